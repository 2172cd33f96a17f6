// Why a CUDA candidate is as fast as it is: what its kernels take, what its plan launches, the
// floors that the device sets, and measured times where there are some; and the one sentence that a
// person or a proposer should read first. Pure: what runs, disassembles and plans is given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/candidate.h"
#include "model/launch_plan.h"

namespace kbeam {

// What a device was measured to reach ("ceilings" in contract/devices/*.json).
struct DeviceCeilings {
  double copy_tb_per_s = 0;  // bytes read and written by a large device copy
  double fp32_tflop_per_s = 0;
  double tf32_tflop_per_s = 0;
  double fp16_tflop_per_s = 0;
  double fp64_tflop_per_s = 0;
  double replay_us = 0;          // a graph of one kernel that does nothing
  double dependent_node_us = 0;  // one more node that reads what the node before it wrote
  std::string proof;
};
// Nothing where the description has no "ceilings".
Result<std::optional<DeviceCeilings>> ceilings_from_json(const Json& device_description);

// Instructions of one unit in the kernel's code, the most frequent unit first.
struct ProfiledInstructions {
  std::string unit;
  std::int64_t count = 0;
};

struct ProfiledKernel {
  std::string name;  // for people
  KernelResources resources;
  std::vector<ProfiledInstructions> instructions;  // empty: no disassembler here
};

// How blocks of one launch fit on a multiprocessor.
struct LaunchFit {
  int resident_blocks = 0;
  double occupancy = 0;    // resident warps of those that a multiprocessor holds
  std::string limited_by;  // "registers and shared memory", "threads"
};

// What a worker measured of one case: the file that --measured names holds
// {"device": "NVIDIA H200", "cases": [MeasuredCase...]} with these names.
struct MeasuredNode {
  int node = 0;        // index into LaunchPlan::nodes
  std::string kernel;  // mangled; empty for what is no kernel
  double median_ns = 0;
};
struct MeasuredCounter {  // one metric of ncu for one kernel, over its launches
  std::string kernel;
  std::string name;
  double value = 0;
};
struct MeasuredCase {
  std::string case_name;
  double total_ns = 0;  // the whole plan, replayed as one graph: median
  std::vector<MeasuredNode> nodes;
  std::vector<MeasuredCounter> counters;
};
struct MeasuredProfile {
  std::string device;
  std::vector<MeasuredCase> cases;
};
Result<MeasuredProfile> measured_profile_from_json(const Json& json);

struct CaseToProfile {
  std::string case_name;
  double flops = 0;
  double bytes = 0;  // that any implementation must move
  const LaunchPlan& plan;
  std::vector<LaunchFit> fits;                           // one a node; of kernels
  const std::map<std::string, ProfiledKernel>& kernels;  // by mangled name
  int multiprocessors = 0;
  std::optional<DeviceCeilings> ceilings;
  std::optional<MeasuredCase> measured;
  std::vector<MeasuredCounter> counters = {};  // beside those of `measured`
};

// All nodes that launch one kernel with blocks of one size; or all copies, fills, ...
struct ProfiledPhase {
  std::string name;
  std::string kernel;  // mangled; empty for what is no kernel
  int nodes = 0;
  std::int64_t least_blocks = 0, most_blocks = 0;  // of a launch
  std::int64_t threads = 0;                        // of a block
  std::int64_t shared_bytes = 0;                   // of a block, static and dynamic
  LaunchFit fit;
  double least_waves = 0;         // of the smallest launch; below 1 the device is not full
  std::optional<double> time_ns;  // of all its nodes
  std::optional<double> share;    // of the time of all nodes
};

struct CaseProfile {
  std::string case_name;
  double flops = 0;
  double bytes = 0;
  int nodes = 0;
  int chain = 0;  // nodes on the longest path of dependencies
  std::vector<ProfiledPhase> phases;
  // What the device cannot beat; nothing without ceilings.
  std::optional<double> memory_floor_ns;
  std::optional<double> compute_floor_ns;
  std::string compute_unit;  // whose ceiling that is: "fp32", "tf32", "fp16", "fp64"
  std::optional<double> launch_floor_ns;
  std::optional<double> launch_share;  // of the total, or of the largest floor
  std::optional<double> total_ns;
  std::optional<double> critical_path_ns;
  std::optional<double> gaps_ns;  // total less critical path: launches, and waiting between nodes
  std::vector<MeasuredCounter> counters;
  std::string bottleneck;  // one sentence
};

// bad_input when measured nodes are not those of the plan.
Result<CaseProfile> profile_case(const CaseToProfile& subject);

Json to_json(const ProfiledKernel& kernel);
Json to_json(const CaseProfile& profile);
Json to_json(const DeviceCeilings& ceilings);

}  // namespace kbeam
