#include <cmath>
#include <nlohmann/json.hpp>

#include "model/json_walk.h"
#include "report/profile.h"

namespace kbeam {

static void walk(auto& visit, Is<DeviceCeilings> auto& ceilings) {
  visit("copy_tb_per_s", ceilings.copy_tb_per_s);
  visit("fp32_tflop_per_s", ceilings.fp32_tflop_per_s);
  visit("tf32_tflop_per_s", ceilings.tf32_tflop_per_s);
  visit("fp16_tflop_per_s", ceilings.fp16_tflop_per_s);
  visit("fp64_tflop_per_s", ceilings.fp64_tflop_per_s);
  visit("replay_us", ceilings.replay_us);
  visit("dependent_node_us", ceilings.dependent_node_us);
  visit("proof", ceilings.proof);
}

static void walk(auto& visit, Is<ProfiledInstructions> auto& instructions) {
  visit("unit", instructions.unit);
  visit("count", instructions.count);
}

static void walk(auto& visit, Is<KernelResources> auto& kernel) {
  visit("registers", kernel.registers);
  visit("static_shared_bytes", kernel.static_shared_bytes);
  visit("spill_bytes", kernel.spill_bytes);
  visit("stack_bytes", kernel.stack_bytes);
  visit("max_threads", kernel.max_threads);
}

static void walk(auto& visit, Is<ProfiledKernel> auto& kernel) {
  visit("name", kernel.name);
  visit("resources", kernel.resources);
  visit("instructions", kernel.instructions);
}

static void walk(auto& visit, Is<LaunchFit> auto& fit) {
  visit("resident_blocks", fit.resident_blocks);
  visit("occupancy", fit.occupancy);
  visit("limited_by", fit.limited_by);
}

static void walk(auto& visit, Is<MeasuredNode> auto& node) {
  visit("node", node.node);
  visit("kernel", node.kernel);
  visit("median_ns", node.median_ns);
}

static void walk(auto& visit, Is<MeasuredCounter> auto& counter) {
  visit("kernel", counter.kernel);
  visit("name", counter.name);
  visit("value", counter.value);
}

static void walk(auto& visit, Is<MeasuredCase> auto& measured) {
  visit("case", measured.case_name);
  visit("total_ns", measured.total_ns);
  visit("nodes", measured.nodes);
  visit("counters", measured.counters);
}

static void walk(auto& visit, Is<MeasuredProfile> auto& measured) {
  visit("device", measured.device);
  visit("cases", measured.cases);
}

static void walk(auto& visit, Is<ProfiledPhase> auto& phase) {
  visit("name", phase.name);
  visit("kernel", phase.kernel);
  visit("nodes", phase.nodes);
  visit("least_blocks", phase.least_blocks);
  visit("most_blocks", phase.most_blocks);
  visit("threads", phase.threads);
  visit("shared_bytes", phase.shared_bytes);
  visit("fit", phase.fit);
  visit("least_waves", phase.least_waves);
  visit("time_ns", phase.time_ns);
  visit("share", phase.share);
}

static void walk(auto& visit, Is<CaseProfile> auto& profile) {
  visit("case", profile.case_name);
  visit("bottleneck", profile.bottleneck);
  visit("flops", profile.flops);
  visit("bytes", profile.bytes);
  visit("nodes", profile.nodes);
  visit("chain", profile.chain);
  visit("memory_floor_ns", profile.memory_floor_ns);
  visit("compute_floor_ns", profile.compute_floor_ns);
  visit("compute_unit", profile.compute_unit);
  visit("launch_floor_ns", profile.launch_floor_ns);
  visit("launch_share", profile.launch_share);
  visit("total_ns", profile.total_ns);
  visit("critical_path_ns", profile.critical_path_ns);
  visit("gaps_ns", profile.gaps_ns);
  visit("phases", profile.phases);
  visit("counters", profile.counters);
}

Json to_json(const ProfiledKernel& kernel) {
  return write_value(kernel);
}
Json to_json(const CaseProfile& profile) {
  return write_value(profile);
}
Json to_json(const DeviceCeilings& ceilings) {
  return write_value(ceilings);
}

static bool is_time(double ns) {
  return std::isfinite(ns) && ns >= 0;
}

Result<std::optional<DeviceCeilings>> ceilings_from_json(const Json& device_description) {
  if (!device_description.is_object() || !device_description.contains("ceilings"))
    return std::optional<DeviceCeilings>();
  ASSIGN_OR_RETURN(
      DeviceCeilings ceilings,
      read_noun<DeviceCeilings>(device_description["ceilings"], "a device's ceilings"));
  return std::optional<DeviceCeilings>(std::move(ceilings));
}

// A worker without ncu leaves the counters out.
Result<MeasuredProfile> measured_profile_from_json(const Json& json) {
  Json complete = json;
  if (complete.is_object() && complete.contains("cases") && complete["cases"].is_array())
    for (Json& one : complete["cases"])
      if (one.is_object() && !one.contains("counters")) one["counters"] = Json::array();
  ASSIGN_OR_RETURN(MeasuredProfile profile,
                   read_noun<MeasuredProfile>(complete, "a measured profile"));
  for (const MeasuredCase& one : profile.cases) {
    bool are_times = is_time(one.total_ns);
    for (const MeasuredNode& node : one.nodes) are_times = are_times && is_time(node.median_ns);
    if (!are_times)
      return Error{ErrorCode::corrupt, "read a measured profile from JSON",
                   "case " + one.case_name + " has a time that is negative or no number",
                   "measure again: kbeam-worker --nodes"};
  }
  return profile;
}

}  // namespace kbeam
