// kbeam profile: what a candidate's kernels take, what its plan launches, the floors of the device,
// measured times where a worker left some, and the bottleneck in one sentence. Of a .cpp the
// instructions by width. Measures nothing itself.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/cuda_plans.h"
#include "apps/cli/refusals.h"
#include "build/compiler.h"
#include "build/instruction_mix.h"
#include "model/json_forms.h"
#include "problem/problem_library.h"
#include "report/ncu_counters.h"
#include "report/profile.h"
#include "report/text.h"
#include "target/cuda/occupancy.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

// "fp32 40 %, shuffle 21 %, ...": the units that make up most of the code.
std::string mix_line(const std::vector<ProfiledInstructions>& instructions) {
  std::int64_t total = 0;
  for (const ProfiledInstructions& one : instructions) total += one.count;
  std::vector<std::string> words;
  for (const ProfiledInstructions& one : instructions)
    if (one.count * 100 >= total)
      words.push_back(
          fmt::format("{} {:.0f} %", one.unit,
                      100 * static_cast<double>(one.count) / static_cast<double>(total)));
  return fmt::format("{} instructions: {}", total, fmt::join(words, ", "));
}

std::vector<ProfiledInstructions> instructions_of(const InstructionMix& mix) {
  std::vector<ProfiledInstructions> instructions;
  for (const InstructionGroup& group : mix.groups)
    instructions.push_back({group.name, group.count});
  return instructions;
}

// ---- CPU ----

Result<int> profile_cpp(const Options& options) {
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(const std::string source, read_file(options.get("FILE")));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      Compiler::make({.contract_include = home.contract_include, .cache = cache_folder()}));
  BuildRequest request{.source = source,
                       .source_name = fs::path(options.get("FILE")).filename().string()};
  ASSIGN_OR_RETURN(request.knobs, read_knobs(source, options));
  ASSIGN_OR_RETURN(const Artifact artifact, compiler->build(request));
  if (artifact.verdict != Verdict::accepted)
    return refused_build(options.get("FILE"), artifact.verdict, artifact.reason, artifact.log);
  ASSIGN_OR_RETURN(const std::string listing, disassemble_x86(artifact.module));
  const std::vector<ProfiledInstructions> instructions = instructions_of(read_x86(listing));
  if (options.json()) {
    Json counts = Json::object();
    for (const ProfiledInstructions& one : instructions) counts[one.unit] = one.count;
    fmt::print("{}\n", json_text(Json{{"file", options.get("FILE")},
                                      {"target", "cpu"},
                                      {"instructions", std::move(counts)}}));
    return kDone;
  }
  fmt::print("{}\n", mix_line(instructions));
  fmt::print(
      "These are counts in the code, loops not weighted. Of a .cpp there is no more to say without "
      "running it: kbeam bench {} --problem NAME times it.\n",
      options.get("FILE"));
  return kDone;
}

// ---- CUDA ----

LaunchFit fit_of(const KernelResources& kernel, const PlanNode& node, const kbeam_device& device) {
  const std::int64_t threads = std::int64_t{node.block[0]} * node.block[1] * node.block[2];
  const auto blocks = [&](const KernelResources& resources, std::int64_t shared) {
    return resident_blocks(resources, device, threads, shared);
  };
  LaunchFit fit{.resident_blocks = blocks(kernel, node.dynamic_shared_bytes)};
  const std::int64_t warps = (threads + 31) / 32;
  fit.occupancy = static_cast<double>(fit.resident_blocks * warps * 32) /
                  static_cast<double>(device.threads_per_multiprocessor);
  // How many blocks would fit if one resource alone were scarce; the scarcest decide.
  KernelResources no_registers = kernel, no_shared = kernel, neither = kernel;
  no_registers.registers = neither.registers = 0;
  no_shared.static_shared_bytes = neither.static_shared_bytes = 0;
  std::vector<std::string> scarce;
  if (blocks(no_shared, 0) <= fit.resident_blocks) scarce.emplace_back("registers");
  if (blocks(no_registers, node.dynamic_shared_bytes) <= fit.resident_blocks)
    scarce.emplace_back("shared memory");
  if (blocks(neither, 0) <= fit.resident_blocks) scarce = {"threads"};
  fit.limited_by = fmt::format("{}", fmt::join(scarce, " and "));
  return fit;
}

struct Profiled {
  PlannedFile file;
  std::map<std::string, ProfiledKernel> kernels;  // those that a case launches
  std::optional<DeviceCeilings> ceilings;
  std::vector<CaseProfile> cases;
  std::vector<std::string> notes;  // what could not be found out, and why
};

void collect_kernels(Profiled& profiled) {
  for (const PlannedCase& one : profiled.file.plans) {
    if (!one.planned.plan) continue;
    for (const PlanNode& node : one.planned.plan->nodes) {
      const auto found = profiled.file.kernels.find(node.kernel);
      if (node.kind == NodeKind::kernel && found != profiled.file.kernels.end())
        profiled.kernels[node.kernel] = {short_name(node), found->second, {}};
    }
  }
  const Result<std::string> listing = disassemble_sass(profiled.file.module);
  if (!listing.ok()) {
    profiled.notes.push_back("no instruction mix: " + listing.error().happened + "; " +
                             listing.error().advice);
    return;
  }
  const auto mixes = read_sass(*listing);
  for (auto& [name, kernel] : profiled.kernels)
    if (const auto mix = mixes.find(name); mix != mixes.end())
      kernel.instructions = instructions_of(mix->second);
}

Result<std::optional<MeasuredProfile>> read_measured(const Options& options) {
  if (!options.has("--measured")) return std::optional<MeasuredProfile>();
  ASSIGN_OR_RETURN(const std::string text, read_file(options.get("--measured")));
  ASSIGN_OR_RETURN(const Json json, parse_json(text, options.get("--measured")));
  ASSIGN_OR_RETURN(MeasuredProfile measured, measured_profile_from_json(json));
  return std::optional<MeasuredProfile>(std::move(measured));
}

// ncu says which kernel ran, not for which case.
Result<std::vector<MeasuredCounter>> read_counters(const Options& options,
                                                   const Profiled& profiled) {
  if (!options.has("--counters")) return std::vector<MeasuredCounter>();
  const std::string path = options.get("--counters");
  if (profiled.file.plans.size() != 1)
    return Error{ErrorCode::bad_input, "read " + path, "several cases are profiled",
                 "name the one that was counted with --case"};
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  std::set<std::string> kernels;
  for (const auto& [name, kernel] : profiled.kernels) kernels.insert(name);
  return counters_from_ncu(text, kernels);
}

const MeasuredCase* find_case(const std::optional<MeasuredProfile>& measured,
                              const std::string& name) {
  if (!measured) return nullptr;
  for (const MeasuredCase& one : measured->cases)
    if (one.case_name == name) return &one;
  return nullptr;
}

Result<Profiled> profile_cuda(const Options& options) {
  Profiled profiled;
  ASSIGN_OR_RETURN(profiled.file, plan_cuda_file(options));
  if (profiled.file.is_problem)
    return Error{ErrorCode::bad_input, "profile " + options.get("FILE"),
                 "it is a problem's own code, which is never timed",
                 "name a candidate; kbeam plan shows what problem.cu launches"};
  ASSIGN_OR_RETURN(const std::optional<MeasuredProfile> measured, read_measured(options));
  ASSIGN_OR_RETURN(const std::string description, read_file(profiled.file.device_description));
  ASSIGN_OR_RETURN(const Json device,
                   parse_json(description, profiled.file.device_description.string()));
  ASSIGN_OR_RETURN(profiled.ceilings, ceilings_from_json(device));
  if (!profiled.ceilings)
    profiled.notes.push_back("no floors: the description of " + profiled.file.device.name +
                             " has no \"ceilings\"");
  collect_kernels(profiled);
  ASSIGN_OR_RETURN(const std::vector<MeasuredCounter> counters, read_counters(options, profiled));
  if (counters.empty())
    profiled.notes.push_back(
        "no hardware counters: --counters takes what ncu wrote (docs/cuda.md)");

  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   Compiler::make({.contract_include = profiled.file.home.contract_include,
                                   .cache = cache_folder()}));
  ASSIGN_OR_RETURN(const fs::path module, compiler->build_problem(profiled.file.problem.code));
  ASSIGN_OR_RETURN(const std::unique_ptr<ProblemLibrary> library, ProblemLibrary::load(module));
  for (const PlannedCase& one : profiled.file.plans) {
    if (!one.planned.plan) {
      profiled.notes.push_back(fmt::format("case {} has no plan: {}: {}", one.title,
                                           to_string(one.planned.verdict), one.planned.sentence));
      continue;
    }
    const CaseAdapter view(one.the_case);
    CaseToProfile subject{.case_name = one.title,
                          .flops = library->code().flops(view),
                          .bytes = library->code().bytes(view),
                          .plan = *one.planned.plan,
                          .kernels = profiled.kernels,
                          .multiprocessors = profiled.file.device.device.multiprocessors,
                          .ceilings = profiled.ceilings,
                          .counters = counters};
    for (const PlanNode& node : subject.plan.nodes) {
      const auto found = profiled.kernels.find(node.kernel);
      subject.fits.push_back(found == profiled.kernels.end() ? LaunchFit{}
                                                             : fit_of(found->second.resources, node,
                                                                      profiled.file.device.device));
    }
    if (const MeasuredCase* const times = find_case(measured, one.title)) subject.measured = *times;
    ASSIGN_OR_RETURN(CaseProfile profile, profile_case(subject));
    profiled.cases.push_back(std::move(profile));
  }
  return profiled;
}

std::string time_or_dash(const std::optional<double>& time_ns) {
  return time_ns ? format_time_ns(*time_ns) : "-";
}

void print_case(const CaseProfile& profile, const std::map<std::string, ProfiledKernel>& kernels) {
  fmt::print("{}: {}\n", profile.case_name, profile.bottleneck);
  fmt::print("  {:.4g} MB, {:.4g} GFLOP; {} nodes, {} in the longest chain", profile.bytes * 1e-6,
             profile.flops * 1e-9, profile.nodes, profile.chain);
  if (profile.launch_floor_ns)
    fmt::print("; floors: memory {}, {} {}, launches {} ({:.0f} %)",
               time_or_dash(profile.memory_floor_ns), profile.compute_unit,
               time_or_dash(profile.compute_floor_ns), time_or_dash(profile.launch_floor_ns),
               100 * profile.launch_share.value_or(0));
  if (profile.total_ns)
    fmt::print("; measured {}, critical path {}, gaps {}", time_or_dash(profile.total_ns),
               time_or_dash(profile.critical_path_ns), time_or_dash(profile.gaps_ns));
  fmt::print("\n");
  std::vector<TableLine> lines{{"kernel", "nodes", "blocks", "threads", "registers", "spilled",
                                "shared", "resident", "occupancy", "limited by", "waves", "time",
                                "share"}};
  for (const ProfiledPhase& phase : profile.phases) {
    const auto found = kernels.find(phase.kernel);
    TableLine line{phase.name, std::to_string(phase.nodes)};
    if (found == kernels.end()) {
      line.resize(11);
    } else {
      const KernelResources& resources = found->second.resources;
      line.push_back(phase.least_blocks == phase.most_blocks
                         ? std::to_string(phase.most_blocks)
                         : fmt::format("{}..{}", phase.least_blocks, phase.most_blocks));
      line.insert(line.end(),
                  {std::to_string(phase.threads), std::to_string(resources.registers),
                   std::to_string(resources.spill_bytes), std::to_string(phase.shared_bytes),
                   std::to_string(phase.fit.resident_blocks),
                   fmt::format("{:.0f} %", 100 * phase.fit.occupancy), phase.fit.limited_by,
                   fmt::format("{:.2f}", phase.least_waves)});
    }
    line.push_back(phase.time_ns ? format_time_ns(*phase.time_ns) : "");
    line.push_back(phase.share ? fmt::format("{:.0f} %", 100 * *phase.share) : "");
    lines.push_back(std::move(line));
  }
  print_table(lines);
  for (const MeasuredCounter& counter : profile.counters) {
    const auto found = kernels.find(counter.kernel);
    fmt::print("  {} of {}: {:g}\n", counter.name,
               found == kernels.end() ? counter.kernel : found->second.name, counter.value);
  }
}

void print_profile(const Profiled& profiled) {
  for (const CaseProfile& one : profiled.cases) print_case(one, profiled.kernels);
  for (const auto& [name, kernel] : profiled.kernels)
    if (!kernel.instructions.empty())
      fmt::print("{}: {}\n", kernel.name, mix_line(kernel.instructions));
  for (const std::string& note : profiled.notes) fmt::print("note: {}\n", note);
}

void print_json(const Profiled& profiled, const Options& options) {
  Json json{{"file", options.get("FILE")},
            {"target", "cuda"},
            {"problem", profiled.file.problem.name},
            {"device", profiled.file.device.name},
            {"notes", profiled.notes}};
  json["ceilings"] = profiled.ceilings ? to_json(*profiled.ceilings) : Json(nullptr);
  json["kernels"] = Json::object();
  for (const auto& [name, kernel] : profiled.kernels) json["kernels"][name] = to_json(kernel);
  json["cases"] = Json::array();
  for (const CaseProfile& one : profiled.cases) json["cases"].push_back(to_json(one));
  fmt::print("{}\n", json_text(json));
}

}  // namespace

int profile_command(const Options& options) {
  if (fs::path(options.get("FILE")).extension() != ".cu") {
    const Result<int> code = profile_cpp(options);
    return code.ok() ? *code : report_error(code.error(), options);
  }
  const Result<Profiled> profiled = profile_cuda(options);
  if (!profiled.ok()) return report_error(profiled.error(), options);
  if (options.json())
    print_json(*profiled, options);
  else
    print_profile(*profiled);
  return profiled->cases.size() == profiled->file.plans.size() ? kDone : kNo;
}

}  // namespace kbeam::cli
