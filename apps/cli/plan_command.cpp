// kbeam plan: what a CUDA candidate launches for a shape, as a table and as JSON. Builds and plans;
// needs nvcc but no GPU.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/cuda_plans.h"
#include "model/json_forms.h"
#include "target/cuda/occupancy.h"

namespace kbeam::cli {
namespace {

std::string text_of(const std::array<std::uint32_t, 3>& extent) {
  if (extent[2] > 1) return fmt::format("{}x{}x{}", extent[0], extent[1], extent[2]);
  if (extent[1] > 1) return fmt::format("{}x{}", extent[0], extent[1]);
  return fmt::format("{}", extent[0]);
}

std::string text_of(const LaunchPlan& plan, const BufferPlace& place) {
  const std::string& name = plan.buffers[static_cast<std::size_t>(place.buffer)].name;
  return place.offset_bytes == 0 ? name : fmt::format("{}+{}", name, place.offset_bytes);
}

// Four and eight bytes are most often a whole number or a float; others are shown by their size.
std::string text_of_value(const std::string& bytes) {
  if (bytes.size() == 4) {
    std::int32_t whole = 0;
    float real = 0;
    std::memcpy(&whole, bytes.data(), 4);
    std::memcpy(&real, bytes.data(), 4);
    constexpr std::int32_t kLikelyWhole = 1 << 23;
    return whole > -kLikelyWhole && whole < kLikelyWhole ? std::to_string(whole)
                                                         : fmt::format("{:g}", real);
  }
  if (bytes.size() == 8) {
    std::int64_t whole = 0;
    std::memcpy(&whole, bytes.data(), 8);
    return std::to_string(whole);
  }
  if (bytes.size() == 1) return std::to_string(static_cast<int>(bytes[0]));
  return fmt::format("({} bytes)", bytes.size());
}

std::string text_of(const LaunchPlan& plan, const PlanArgument& argument) {
  switch (argument.kind) {
    case KBEAM_VALUE:
      return text_of_value(argument.value);
    case KBEAM_ADDRESS:
      return text_of(plan, argument.address);
    case KBEAM_TENSOR_MAP:
      return fmt::format("tensor map {}", argument.id);
    case KBEAM_CONDITION:
      return fmt::format("condition {}", argument.id);
  }
  return "?";
}

std::string arguments_of(const LaunchPlan& plan, const PlanNode& node) {
  std::vector<std::string> words;
  switch (node.kind) {
    case NodeKind::kernel:
      for (const PlanArgument& argument : node.arguments) words.push_back(text_of(plan, argument));
      break;
    case NodeKind::fill:
      words = {text_of(plan, node.to), fmt::format("{} bytes of {}", node.bytes, node.byte_value)};
      break;
    case NodeKind::copy:
      words = {text_of(plan, node.to), text_of(plan, node.from),
               fmt::format("{} bytes", node.bytes)};
      break;
    case NodeKind::gemm:
      words = {text_of(plan, node.gemm.c), text_of(plan, node.gemm.a), text_of(plan, node.gemm.b),
               fmt::format("m {} n {} k {} batch {}", node.gemm.m, node.gemm.n, node.gemm.k,
                           node.gemm.batch)};
      break;
    case NodeKind::vendor_call:
      for (const BufferPlace& place : node.pointers) words.push_back(text_of(plan, place));
      for (const std::int64_t number : node.numbers) words.push_back(std::to_string(number));
      break;
    case NodeKind::conditional:
      words = {fmt::format("condition {}", node.condition)};
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string attributes_of(const PlanNode& node) {
  std::vector<std::string> words;
  if (node.cooperative) words.emplace_back("cooperative");
  if (node.overlap_previous) words.emplace_back("overlap");
  if (node.shared_carveout_percent >= 0)
    words.push_back(fmt::format("carveout {}", node.shared_carveout_percent));
  if (node.has_otherwise) words.emplace_back("else");
  return fmt::format("{}", fmt::join(words, " "));
}

void print_nodes(const LaunchPlan& plan) {
  std::vector<TableLine> lines{
      {"node", "after", "kernel", "grid", "block", "cluster", "shared", "", "arguments"}};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    const bool is_kernel = node.kind == NodeKind::kernel;
    const std::string inside =
        node.body < 0
            ? std::string()
            : fmt::format("{} of {}: ", node.body % 2 == 0 ? "if" : "else", node.body / 2);
    lines.push_back({std::to_string(i), fmt::format("{}", fmt::join(node.after, ",")),
                     inside + short_name(node), is_kernel ? text_of(node.grid) : "",
                     is_kernel ? text_of(node.block) : "",
                     is_kernel && node.cluster[0] > 0 ? text_of(node.cluster) : "",
                     node.dynamic_shared_bytes > 0 ? std::to_string(node.dynamic_shared_bytes) : "",
                     attributes_of(node), arguments_of(plan, node)});
  }
  print_table(lines);
}

// Each kernel once: what it takes, and how many of its blocks a multiprocessor holds.
void print_kernels(const LaunchPlan& plan, const PlannedFile& file) {
  std::vector<TableLine> lines{
      {"kernel", "threads", "registers", "static shared", "spilled", "resident blocks"}};
  for (const PlanNode& node : plan.nodes) {
    const auto found = file.kernels.find(node.kernel);
    if (node.kind != NodeKind::kernel || found == file.kernels.end()) continue;
    const std::int64_t threads = std::int64_t{node.block[0]} * node.block[1] * node.block[2];
    TableLine line{short_name(node),
                   std::to_string(threads),
                   std::to_string(found->second.registers),
                   std::to_string(found->second.static_shared_bytes),
                   std::to_string(found->second.spill_bytes),
                   std::to_string(resident_blocks(found->second, file.device.device, threads,
                                                  node.dynamic_shared_bytes))};
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  if (lines.size() > 1) print_table(lines);
}

void print_plan(const PlannedCase& one, const PlannedFile& file) {
  if (!one.planned.plan) {
    fmt::print("{}: {}: {}\n", one.title, to_string(one.planned.verdict), one.planned.sentence);
    return;
  }
  const LaunchPlan& plan = *one.planned.plan;
  fmt::print("{}: {} node{}, {} bytes of scratch{}\n", one.title, plan.nodes.size(),
             plan.nodes.size() == 1 ? "" : "s", plan.scratch_bytes(),
             plan.uses_library() ? "; calls a library, so it cannot ship" : "");
  print_nodes(plan);
  print_kernels(plan, file);
  for (const PlanFigure& figure : plan.figures)
    fmt::print("  figure {}: at most {:g} {} for each of {}\n", figure.name, figure.limit,
               figure.unit, fmt::join(figure.radix_names, ", "));
  for (const auto& [key, value] : plan.notes) fmt::print("  note {}: {}\n", key, value);
}

void print_json(const PlannedFile& file) {
  Json plans = Json::array();
  for (const PlannedCase& planned : file.plans) {
    Json one{{"case", planned.title}, {"verdict", to_string(planned.planned.verdict)}};
    if (planned.planned.plan) {
      one["hash"] = launch_plan_hash(*planned.planned.plan);
      one["scratch_bytes"] = planned.planned.plan->scratch_bytes();
      one["plan"] = to_json(*planned.planned.plan);
    } else {
      one["sentence"] = planned.planned.sentence;
    }
    plans.push_back(std::move(one));
  }
  fmt::print("{}\n", json_text(Json{{"plans", std::move(plans)}}));
}

}  // namespace

int plan_command(const Options& options) {
  const Result<PlannedFile> file = plan_cuda_file(options);
  if (!file.ok()) return report_error(file.error(), options);
  if (options.json()) {
    print_json(*file);
  } else {
    for (const PlannedCase& one : file->plans) print_plan(one, *file);
  }
  const bool all_accepted =
      std::all_of(file->plans.begin(), file->plans.end(),
                  [](const PlannedCase& one) { return one.planned.verdict == Verdict::accepted; });
  return all_accepted ? kDone : kNo;
}

}  // namespace kbeam::cli
