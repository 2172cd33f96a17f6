// Kills one process when a deadline passes. One sleeping thread a process; arming and disarming
// cost two atomic stores, because the thread keeps sleeping through deadlines that are later than
// the one it waits for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace kbeam {

class Watchdog {
 public:
  // `pidfd` stays the caller's and must outlive the watchdog.
  explicit Watchdog(int pidfd);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void arm(double timeout_s);
  // True when the deadline had passed and the process was killed.
  [[nodiscard]] bool disarm();

 private:
  void watch();

  int pidfd_;
  std::atomic<std::int64_t> deadline_ns_;
  std::atomic<std::int64_t> wake_ns_;  // when the thread looks next
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace kbeam
