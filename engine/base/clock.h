// Time as an interface, so that tests never sleep.
#pragma once

#include <cstdint>

namespace kbeam {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t monotonic_ns() const = 0;
  virtual std::int64_t unix_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override;
  std::int64_t unix_ms() const override;
};

// Moves only when told to.
class ManualClock final : public Clock {
 public:
  std::int64_t monotonic_ns() const override { return now_ns_; }
  std::int64_t unix_ms() const override { return now_ns_ / 1'000'000; }
  void advance_ns(std::int64_t step_ns) { now_ns_ += step_ns; }

 private:
  std::int64_t now_ns_ = 0;
};

}  // namespace kbeam
