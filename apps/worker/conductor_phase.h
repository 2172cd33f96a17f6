// Where the wall time of an evaluation goes: shared by the files that implement the conductor, and
// by nothing else.
#pragma once

#include <cstdint>

#include "apps/worker/conductor.h"

namespace kbeam {

// Adds the time of its life to a phase of the result.
class Conductor::Phase {
 public:
  Phase(Conductor& conductor, const char* name)
      : conductor_(conductor), name_(name), began_ns_(conductor.clock_.monotonic_ns()) {}
  ~Phase() {
    const double spent_s = static_cast<double>(conductor_.clock_.monotonic_ns() - began_ns_) * 1e-9;
    conductor_.trial_->result().phase_s[name_] += spent_s;
  }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  Conductor& conductor_;
  const char* name_;
  std::int64_t began_ns_;
};

}  // namespace kbeam
