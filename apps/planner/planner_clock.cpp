// These definitions come before the C library's for every module that is loaded. They keep honest
// code repeatable; they are no fence (a module can read the processor's counter).
#include "planner/planner_clock.h"

#include <sys/time.h>

#include <ctime>

namespace kbeam::planner {
namespace {
std::int64_t seconds_now = 0;
std::int64_t calls = 0;
}  // namespace

void set_clock_s(std::int64_t seconds) {
  seconds_now = seconds;
}

timespec next_time() {
  constexpr std::int64_t kStep_ns = 1000;
  const std::int64_t ns = ++calls * kStep_ns;
  return {seconds_now + ns / 1'000'000'000, ns % 1'000'000'000};
}

}  // namespace kbeam::planner

#define KBEAM_EXPORT extern "C" __attribute__((visibility("default")))

KBEAM_EXPORT int clock_gettime(clockid_t, timespec* time) noexcept {
  *time = kbeam::planner::next_time();
  return 0;
}
KBEAM_EXPORT int gettimeofday(timeval* time, void*) noexcept {
  const timespec now = kbeam::planner::next_time();
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
KBEAM_EXPORT time_t time(time_t* result) noexcept {
  const time_t now = kbeam::planner::next_time().tv_sec;
  if (result != nullptr) *result = now;
  return now;
}
KBEAM_EXPORT clock_t clock() noexcept {
  return kbeam::planner::next_time().tv_sec;
}
