// How much of a campaign had at least one build, check or measurement running: the rest is the
// engine's overhead.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/clock.h"

namespace kbeam {

class ActivityMeter {
 public:
  explicit ActivityMeter(const Clock& clock) : clock_(clock), began_ns_(clock.monotonic_ns()) {}

  // Work from construction to destruction, on any thread.
  class Span {
   public:
    explicit Span(ActivityMeter& meter) : meter_(meter) { meter_.enter(); }
    ~Span() { meter_.leave(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    ActivityMeter& meter_;
  };

  double wall_s() const;
  double busy_s() const;  // the union of all spans, open ones included
  double overhead_fraction() const;

 private:
  void enter();
  void leave();

  const Clock& clock_;
  std::int64_t began_ns_;
  mutable std::mutex mutex_;
  int open_ = 0;
  std::int64_t opened_ns_ = 0;
  std::int64_t busy_ns_ = 0;
};

}  // namespace kbeam
