// The thread behind the deadline.
#include "target/cpu/watchdog.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <limits>

namespace kbeam {
namespace {

constexpr std::int64_t kIdle = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kFired = -1;
constexpr double kLongest_s = 1e6;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Watchdog::Watchdog(int pidfd) : pidfd_(pidfd), deadline_ns_(kIdle), wake_ns_(kIdle) {
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::arm(double timeout_s) {
  const double bounded_s = timeout_s > 0 && timeout_s < kLongest_s ? timeout_s : kLongest_s;
  const std::int64_t deadline = now_ns() + static_cast<std::int64_t>(bounded_s * 1e9);
  deadline_ns_.store(deadline);
  if (deadline >= wake_ns_.load()) return;
  // Taking the mutex makes sure that the thread is either asleep or about to read the new deadline.
  { const std::lock_guard lock(mutex_); }
  changed_.notify_one();
}

bool Watchdog::disarm() {
  return deadline_ns_.exchange(kIdle) == kFired;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    // Announced before the deadline is read again: an arm() in between either is seen here or sees
    // this.
    std::int64_t deadline = deadline_ns_.load();
    wake_ns_.store(deadline);
    if (deadline_ns_.load() != deadline) continue;
    if (deadline == kFired || deadline == kIdle) {
      wake_ns_.store(kIdle);
      if (deadline_ns_.load() == deadline) changed_.wait(lock);
    } else if (now_ns() < deadline) {
      changed_.wait_until(
          lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline)));
    } else if (deadline_ns_.compare_exchange_strong(deadline, kFired)) {
      syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0);
    }
  }
}

}  // namespace kbeam
