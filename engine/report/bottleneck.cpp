#include "report/bottleneck.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "report/text.h"

namespace kbeam {
namespace {

// Where a launch leaves this part of the device's room empty, more blocks come before other advice.
constexpr double kFullEnough = 0.7;
// Fewer resident warps than this hide little latency.
constexpr double kFewWarps = 0.25;
constexpr double kGapsMatter = 0.3;

const KernelResources* resources_of(const ProfiledPhase& phase, const CaseToProfile& subject) {
  const auto found = subject.kernels.find(phase.kernel);
  return found == subject.kernels.end() ? nullptr : &found->second.resources;
}

bool is_kernel(const ProfiledPhase& phase) {
  return !phase.kernel.empty();
}

// What is wrong with one kernel, most important first; empty when nothing stands out.
std::string fault_of(const ProfiledPhase& phase, const CaseToProfile& subject) {
  if (!is_kernel(phase)) return {};
  const KernelResources* const resources = resources_of(phase, subject);
  if (phase.fit.resident_blocks == 0) return "a block of it does not fit on a multiprocessor";
  if (phase.least_blocks < subject.multiprocessors * kFullEnough)
    return fmt::format("its smallest launch has {} blocks for {} multiprocessors",
                       phase.least_blocks, subject.multiprocessors);
  if (resources != nullptr && resources->spill_bytes > 0)
    return fmt::format("it spills {} bytes a thread at {} registers", resources->spill_bytes,
                       resources->registers);
  if (phase.fit.occupancy < kFewWarps)
    return fmt::format("only {:.0f} % of the warps are resident, limited by {}",
                       100 * phase.fit.occupancy, phase.fit.limited_by);
  return {};
}

std::string with_fault(const std::string& sentence, const std::string& fault) {
  return fault.empty() ? sentence + "." : sentence + "; " + fault + ".";
}

std::string floors_of(const CaseProfile& profile) {
  if (!profile.memory_floor_ns || !profile.compute_floor_ns) return {};
  return fmt::format("moving the data takes at least {}, the arithmetic {} ({})",
                     format_time_ns(*profile.memory_floor_ns),
                     format_time_ns(*profile.compute_floor_ns), profile.compute_unit);
}

std::string from_times(const CaseProfile& profile, const CaseToProfile& subject) {
  const double total = *profile.total_ns;
  const double floor =
      std::max(profile.memory_floor_ns.value_or(0), profile.compute_floor_ns.value_or(0));
  if (*profile.gaps_ns > kGapsMatter * total)
    return fmt::format(
        "Launches: {} of {} lie between nodes, {} of which depend on one another; fewer nodes, "
        "overlapped launches or one resident kernel would save them.",
        format_time_ns(*profile.gaps_ns), format_time_ns(total), profile.chain);
  if (profile.phases.empty()) return "The plan launches nothing.";
  const ProfiledPhase& first = profile.phases.front();
  if (floor > 0 && floor > kFullEnough * total) {
    const bool memory = profile.memory_floor_ns.value_or(0) >= profile.compute_floor_ns.value_or(0);
    return fmt::format(
        "{}: {} is {:.0f} % of what the device can do; little is left to gain "
        "without doing less.",
        memory ? "Memory" : "Arithmetic", format_time_ns(total), 100 * floor / total);
  }
  std::string sentence = fmt::format("{} takes {:.0f} % of {}", first.name,
                                     100 * first.share.value_or(0), format_time_ns(total));
  if (floor > 0) sentence += fmt::format(", {:.1f} x the floor of the case", total / floor);
  return with_fault(sentence, fault_of(first, subject));
}

std::optional<double> counter_of(const CaseProfile& profile, const std::string& kernel,
                                 std::string_view metric) {
  for (const MeasuredCounter& one : profile.counters)
    if (one.kernel == kernel && one.name.starts_with(metric)) return one.value;
  return std::nullopt;
}

// How busy the kernel that comes first keeps the device, when ncu was asked.
std::string from_counters(const CaseProfile& profile) {
  if (profile.phases.empty()) return {};
  const ProfiledPhase& first = profile.phases.front();
  const auto memory = counter_of(profile, first.kernel, "dram__throughput");
  const auto units = counter_of(profile, first.kernel, "sm__throughput");
  if (!memory || !units) return {};
  return fmt::format(" {} keeps memory {:.0f} % and multiprocessors {:.0f} % busy (ncu).",
                     first.name, *memory, *units);
}

std::string from_the_plan(const CaseProfile& profile, const CaseToProfile& subject) {
  if (profile.phases.empty()) return "The plan launches nothing.";
  const double floor =
      std::max(profile.memory_floor_ns.value_or(0), profile.compute_floor_ns.value_or(0));
  if (profile.launch_floor_ns && *profile.launch_floor_ns >= floor)
    return fmt::format(
        "Launches: a chain of {} dependent nodes takes at least {}, while {}; fewer nodes or one "
        "resident kernel.",
        profile.chain, format_time_ns(*profile.launch_floor_ns), floors_of(profile));
  // Not measured: the kernel that is launched most often stands for the rest.
  const ProfiledPhase* worst = nullptr;
  for (const ProfiledPhase& phase : profile.phases)
    if (!fault_of(phase, subject).empty() && (worst == nullptr || phase.nodes > worst->nodes))
      worst = &phase;
  if (worst != nullptr)
    return with_fault(fmt::format("{} is the first suspect", worst->name),
                      fault_of(*worst, subject));
  if (floor == 0) return "Nothing stands out; measure it.";
  const bool memory = profile.memory_floor_ns.value_or(0) >= profile.compute_floor_ns.value_or(0);
  return fmt::format("{}: {}; nothing in the kernels stands out.", memory ? "Memory" : "Arithmetic",
                     floors_of(profile));
}

}  // namespace

std::string describe_bottleneck(const CaseProfile& profile, const CaseToProfile& subject) {
  if (profile.total_ns) return from_times(profile, subject) + from_counters(profile);
  return "Not measured. " + from_the_plan(profile, subject) + from_counters(profile);
}

}  // namespace kbeam
