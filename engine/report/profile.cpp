#include "report/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "report/bottleneck.h"

namespace kbeam {
namespace {

std::int64_t volume(const std::array<std::uint32_t, 3>& extent) {
  return std::int64_t{extent[0]} * extent[1] * extent[2];
}

// The longest path through the dependencies where node i costs cost[i]. A body of a conditional
// node counts as much as the node itself: only one of both bodies runs.
double longest_path(const LaunchPlan& plan, const std::vector<double>& cost) {
  std::vector<double> finish(plan.nodes.size(), 0);
  double longest = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    double start = 0;
    if (const int body = plan.nodes[i].body; body >= 0)
      start = finish[static_cast<std::size_t>(body / 2)];
    for (const int before : plan.nodes[i].after)
      start = std::max(start, finish[static_cast<std::size_t>(before)]);
    finish[i] = start + cost[i];
    longest = std::max(longest, finish[i]);
  }
  return longest;
}

Result<std::vector<double>> node_times(const CaseToProfile& subject) {
  const std::vector<PlanNode>& nodes = subject.plan.nodes;
  std::vector<double> times(nodes.size(), 0);
  for (const MeasuredNode& measured : subject.measured->nodes) {
    const auto index = static_cast<std::size_t>(measured.node);
    const bool fits =
        measured.node >= 0 && index < nodes.size() && nodes[index].kernel == measured.kernel;
    if (!fits)
      return Error{ErrorCode::bad_input,
                   fmt::format("merge measured times of case {}", subject.case_name),
                   fmt::format("its node {} is '{}', which the plan does not have there",
                               measured.node, measured.kernel),
                   "measure the same source, knobs and device again"};
    times[index] = measured.median_ns;
  }
  return times;
}

std::string phase_name(const CaseToProfile& subject, const PlanNode& node) {
  if (node.kind == NodeKind::vendor_call) return node.routine;
  if (node.kind != NodeKind::kernel) return std::string(to_string(node.kind));
  const auto found = subject.kernels.find(node.kernel);
  return found == subject.kernels.end() ? node.kernel_name : found->second.name;
}

std::vector<ProfiledPhase> phases_of(const CaseToProfile& subject,
                                     const std::optional<std::vector<double>>& times) {
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::size_t> places;
  std::vector<ProfiledPhase> phases;
  double all = 0;
  for (std::size_t i = 0; i < subject.plan.nodes.size(); ++i) {
    const PlanNode& node = subject.plan.nodes[i];
    const bool is_kernel = node.kind == NodeKind::kernel;
    const std::int64_t threads = is_kernel ? volume(node.block) : 0;
    std::int64_t shared = node.dynamic_shared_bytes;
    if (const auto found = subject.kernels.find(node.kernel); found != subject.kernels.end())
      shared += found->second.resources.static_shared_bytes;
    const std::string name = phase_name(subject, node);
    const auto [place, is_new] =
        places.try_emplace({is_kernel ? node.kernel : name, threads, shared}, phases.size());
    if (is_new)
      phases.push_back({.name = name,
                        .kernel = node.kernel,
                        .threads = threads,
                        .shared_bytes = shared,
                        .fit = subject.fits[i]});
    ProfiledPhase& phase = phases[place->second];
    const std::int64_t blocks = is_kernel ? volume(node.grid) : 0;
    phase.least_blocks = phase.nodes == 0 ? blocks : std::min(phase.least_blocks, blocks);
    phase.most_blocks = std::max(phase.most_blocks, blocks);
    ++phase.nodes;
    if (times) {
      phase.time_ns = phase.time_ns.value_or(0) + (*times)[i];
      all += (*times)[i];
    }
  }
  for (ProfiledPhase& phase : phases) {
    const double room = static_cast<double>(phase.fit.resident_blocks) * subject.multiprocessors;
    phase.least_waves = room > 0 ? static_cast<double>(phase.least_blocks) / room : 0;
    if (phase.time_ns && all > 0) phase.share = *phase.time_ns / all;
  }
  if (times)
    std::stable_sort(phases.begin(), phases.end(),
                     [](const auto& a, const auto& b) { return *a.time_ns > *b.time_ns; });
  return phases;
}

bool uses_unit(const CaseToProfile& subject, std::string_view unit) {
  for (const PlanNode& node : subject.plan.nodes) {
    const auto found = subject.kernels.find(node.kernel);
    if (found == subject.kernels.end()) continue;
    for (const ProfiledInstructions& one : found->second.instructions)
      if (one.unit == unit && one.count > 0) return true;
  }
  return false;
}

// The fastest arithmetic that any part of the plan uses: no sum of parts beats it.
std::pair<std::string, double> compute_ceiling(const CaseToProfile& subject) {
  const DeviceCeilings& device = *subject.ceilings;
  bool half = uses_unit(subject, "mma") || uses_unit(subject, "wgmma");
  bool tf32 = false;
  bool fp64 = uses_unit(subject, "mma fp64");
  for (const PlanNode& node : subject.plan.nodes) {
    if (node.kind != NodeKind::gemm) continue;
    const int type = node.gemm.type_a_b;
    half = half || type == KBEAM_GEMM_F16 || type == KBEAM_GEMM_BF16;
    tf32 = tf32 || node.gemm.compute == KBEAM_COMPUTE_TF32;
    fp64 = fp64 || type == KBEAM_GEMM_F64;
  }
  if (half) return {"fp16", device.fp16_tflop_per_s};
  if (tf32) return {"tf32", device.tf32_tflop_per_s};
  if (fp64) return {"fp64", device.fp64_tflop_per_s};
  return {"fp32", device.fp32_tflop_per_s};
}

void set_floors(const CaseToProfile& subject, CaseProfile& profile) {
  if (!subject.ceilings) return;
  const DeviceCeilings& device = *subject.ceilings;
  const auto [unit, rate] = compute_ceiling(subject);
  profile.compute_unit = unit;
  if (device.copy_tb_per_s > 0)
    profile.memory_floor_ns = subject.bytes / (device.copy_tb_per_s * 1e3);
  if (rate > 0) profile.compute_floor_ns = subject.flops / (rate * 1e3);
  profile.launch_floor_ns =
      1e3 * (device.replay_us + std::max(0, profile.chain - 1) * device.dependent_node_us);
  const double total = profile.total_ns.value_or(
      std::max({profile.memory_floor_ns.value_or(0), profile.compute_floor_ns.value_or(0),
                *profile.launch_floor_ns}));
  if (total > 0) profile.launch_share = std::min(1.0, *profile.launch_floor_ns / total);
}

}  // namespace

Result<CaseProfile> profile_case(const CaseToProfile& subject) {
  CaseProfile profile{.case_name = subject.case_name,
                      .flops = subject.flops,
                      .bytes = subject.bytes,
                      .nodes = static_cast<int>(subject.plan.nodes.size())};
  profile.chain = static_cast<int>(
      longest_path(subject.plan, std::vector<double>(subject.plan.nodes.size(), 1)));
  std::optional<std::vector<double>> times;
  if (subject.measured) {
    ASSIGN_OR_RETURN(times, node_times(subject));
    profile.total_ns = subject.measured->total_ns;
    profile.critical_path_ns = longest_path(subject.plan, *times);
    profile.gaps_ns = std::max(0.0, *profile.total_ns - *profile.critical_path_ns);
    profile.counters = subject.measured->counters;
  }
  profile.counters.insert(profile.counters.end(), subject.counters.begin(), subject.counters.end());
  profile.phases = phases_of(subject, times);
  set_floors(subject, profile);
  profile.bottleneck = describe_bottleneck(profile, subject);
  return profile;
}

}  // namespace kbeam
