// The memory through which a watched run gets its work and gives its results. Compiled into the
// engine and, as text, into the program that runs a watched candidate; so it includes the standard
// library alone.
#pragma once

#include <cstdint>

namespace kbeam::watch {

inline constexpr int kMaxTensors = 16;
inline constexpr int kMaxAxes = 16;
inline constexpr int kNameBytes = 64;
inline constexpr int kTextBytes = 1024;

struct Tensor {
  char name[kNameBytes];
  std::int32_t role;
  std::int32_t type;
  std::int32_t rank;
  std::int32_t unused;
  std::int64_t dim[4];
  std::int64_t stride[4];
  std::uint64_t bytes;
  std::uint64_t offset;  // in the input region, or in the output region
};

struct Axis {
  char name[kNameBytes];
  std::int64_t value;
};

struct Case {
  std::int32_t tensor_count;
  std::int32_t axis_count;
  Tensor tensors[kMaxTensors];
  Axis axes[kMaxAxes];
};

// At the start of the input region, followed by the cases.
struct Job {
  std::int32_t case_count;
  std::int32_t workers;
};

// At the start of the output region. What it says was written beside a candidate: a hint for
// people, never a reason to accept.
struct Progress {
  std::int32_t started;  // cases; the last of them was at work when the program ended
  std::int32_t ended;
  std::int32_t uses_parallel_for;
  std::int32_t unused;
  char refusal[kTextBytes];  // why there is no plan
};

}  // namespace kbeam::watch
