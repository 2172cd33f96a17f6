#include "loop/activity.h"

namespace kbeam {

void ActivityMeter::enter() {
  const std::lock_guard guard(mutex_);
  if (open_++ == 0) opened_ns_ = clock_.monotonic_ns();
}

void ActivityMeter::leave() {
  const std::lock_guard guard(mutex_);
  if (--open_ == 0) busy_ns_ += clock_.monotonic_ns() - opened_ns_;
}

double ActivityMeter::wall_s() const {
  return static_cast<double>(clock_.monotonic_ns() - began_ns_) * 1e-9;
}

double ActivityMeter::busy_s() const {
  const std::lock_guard guard(mutex_);
  const std::int64_t running_ns = open_ > 0 ? clock_.monotonic_ns() - opened_ns_ : 0;
  return static_cast<double>(busy_ns_ + running_ns) * 1e-9;
}

double ActivityMeter::overhead_fraction() const {
  const double wall = wall_s();
  return wall > 0 ? (wall - busy_s()) / wall : 0;
}

}  // namespace kbeam
