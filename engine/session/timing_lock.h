// One measurement at a time on this machine: a file lock that every kbeam takes while it times.
// The kernel frees it when the holder dies, so a crash leaves nothing behind.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace kbeam {

class TimingLock {
 public:
  // Waits for the lock. `on_wait` is called once, with the holder in words, when it is not free at
  // once.
  static Result<std::unique_ptr<TimingLock>> acquire(
      const std::function<void(const std::string& holder)>& on_wait,
      const std::filesystem::path& file = default_file());
  static std::filesystem::path default_file();
  ~TimingLock();
  TimingLock(const TimingLock&) = delete;
  TimingLock& operator=(const TimingLock&) = delete;

 private:
  explicit TimingLock(int file) : file_(file) {}
  int file_;
};

}  // namespace kbeam
