// The page that judge and runner share. The judge writes commands while the runner is stopped; what
// the runner writes back is a hint from untrusted code: read with bounds, shown to people, never a
// proof of anything.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kbeam::control {

// Descriptors that the launcher leaves open for the runner.
inline constexpr int kPageFd = 3;
inline constexpr int kInputFd = 4;
inline constexpr int kOutputFd = 5;
inline constexpr int kScratchFd = 6;

inline constexpr std::size_t kMaxModules = 64;
inline constexpr std::size_t kMaxTensors = 16;
inline constexpr std::size_t kMaxAxes = 32;
inline constexpr std::size_t kMaxExtents = 1024;
inline constexpr std::size_t kNameBytes = 64;
inline constexpr std::size_t kPathsBytes = 32 * 1024;
inline constexpr std::size_t kTextBytes = 4096;
inline constexpr std::size_t kNotesBytes = 16 * 1024;

enum class Command : std::uint32_t { none, load, plan, lay_out, call, empty_call };

enum class Status : std::uint32_t {
  none,
  done,
  cannot_load,
  bad_plan,
  not_supported,
  over_memory,
  confused,  // the judge asked for something that does not fit; an engine mistake
};

enum class Region : std::uint32_t { elsewhere, inputs, outputs, scratch };

struct Tensor {
  char name[kNameBytes];
  std::int32_t role;
  std::int32_t type;
  std::int32_t rank;
  std::int64_t dim[KBEAM_MAX_RANK];
  std::int64_t stride[KBEAM_MAX_RANK];
};

struct Axis {
  char name[kNameBytes];
  std::int64_t value;
};

// Whole pages of one region that hold one tensor of one slot and its guard zones.
struct Extent {
  Region region;
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint64_t tensor_begin;  // from the start of the region
};

// Read once, when the runner starts.
struct Settings {
  std::int32_t workers;
  std::int32_t module_count;
  std::int32_t filter_system_calls;
  std::int32_t may_use_libraries;
  std::int32_t cpu_count;
  std::int32_t cpus[256];
  std::uint64_t input_bytes;
  std::uint64_t output_bytes;
  std::uint64_t scratch_bytes;     // whole pages: the most that a plan may ask for
  char module_paths[kPathsBytes];  // one after the other, each ended by a zero
};

struct Request {
  std::uint64_t sequence;
  Command command;
  std::uint32_t row;
  std::uint32_t plan_id;
  std::uint32_t slot;
  std::uint32_t slot_count;
  std::uint32_t tensor_count;
  std::uint32_t axis_count;
};

enum class Thrown : std::uint32_t { nothing, bad_alloc, other };

// Written by a signal handler on the way down.
struct Fault {
  std::int32_t signal;
  std::int32_t system_call;
  std::uint64_t address;
  Region region;
  std::uint32_t is_write;
  std::int64_t offset;  // from the start of the region
  std::uint32_t memory_exhausted;
  std::uint32_t is_trap;  // of an illegal instruction: the one that compilers put on purpose
  Thrown thrown;
};

struct Reply {
  std::uint64_t sequence;  // of the request that was carried out
  Status status;
  std::uint32_t plan_id;
  std::int64_t scratch_bytes;
  std::uint32_t note_count;
  char text[kTextBytes];
  char notes[kNotesBytes];  // key, zero, value, zero, and so on
  Fault fault;
};

struct Page {
  Settings settings;
  Request request;
  Tensor tensors[kMaxTensors];
  Axis axes[kMaxAxes];
  Extent extents[kMaxExtents];  // [slot * tensor_count + tensor]
  Reply reply;
};
static_assert(std::is_trivially_copyable_v<Page>);

}  // namespace kbeam::control
