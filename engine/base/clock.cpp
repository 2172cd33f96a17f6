#include "base/clock.h"

#include <ctime>

namespace kbeam {
namespace {

std::int64_t read_ns(clockid_t which) {
  timespec now{};
  clock_gettime(which, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

std::int64_t SystemClock::monotonic_ns() const {
  return read_ns(CLOCK_MONOTONIC);
}
std::int64_t SystemClock::unix_ms() const {
  return read_ns(CLOCK_REALTIME) / 1'000'000;
}

}  // namespace kbeam
