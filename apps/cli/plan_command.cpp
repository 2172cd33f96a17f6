// kbeam plan: what a CUDA candidate launches for a shape, as a table and as JSON. Builds and plans;
// needs nvcc but no GPU.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "base/expression.h"
#include "base/spelling.h"
#include "build/source_scan.h"
#include "model/json_forms.h"
#include "target/cuda/occupancy.h"
#include "target/cuda/planner.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

// One plan that was asked for.
struct Asked {
  std::string title;  // the case, and for problem.cu which of its plans
  PlanRequest request;
};

// The problem whose folder the file lies in.
Result<std::string> problem_of(const Options& options) {
  if (options.has("--problem")) return options.get("--problem");
  std::error_code ignored;
  const fs::path file = fs::absolute(options.get("FILE"));
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "problem.toml", ignored)) return folder.string();
  return Error{ErrorCode::bad_input, "plan " + options.get("FILE"),
               "it lies in no problem's folder", "name the problem with --problem"};
}

Result<Problem> open_cuda_problem(const Options& options, const Home& home) {
  ASSIGN_OR_RETURN(const std::string named, problem_of(options));
  Result<Problem> as_cuda = open_problem(named, home, "cuda");
  // The first CUDA candidate of a problem is planned before the problem is one for CUDA.
  return as_cuda.ok() ? std::move(as_cuda) : open_problem(named, home);
}

// "batch=4,n=64": a case of its own, with the derived axes computed.
Result<Case> case_of_shape(const Problem& problem, const std::string& shape) {
  Case the_case{.name = shape, .axes = {}, .family = {}};
  if (!problem.families.empty()) the_case.family = problem.families.front().name;
  const auto mistake = [&](const std::string& what) {
    std::vector<std::string> free;
    for (const Axis& axis : problem.axes)
      if (axis.derived_from.empty()) free.push_back(axis.name + "=N");
    return Error{ErrorCode::bad_input, "read --shape " + shape, what,
                 fmt::format("write {}", fmt::join(free, ","))};
  };
  std::size_t begin = 0;
  while (begin < shape.size()) {
    const std::size_t end = std::min(shape.find(',', begin), shape.size());
    const std::string part = shape.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto axis = std::find_if(problem.axes.begin(), problem.axes.end(), [&](const Axis& one) {
      return one.name == name && one.derived_from.empty();
    });
    if (equals == std::string::npos || axis == problem.axes.end())
      return mistake("the problem has no axis " + name);
    ASSIGN_OR_RETURN(const std::uint64_t value, parse_number(part.substr(equals + 1), "--shape"));
    if (value < static_cast<std::uint64_t>(axis->least) ||
        value > static_cast<std::uint64_t>(axis->most))
      return mistake(fmt::format("{} is {} to {}", name, axis->least, axis->most));
    the_case.axes[name] = static_cast<std::int64_t>(value);
    begin = end + 1;
  }
  for (const Axis& axis : problem.axes)
    if (axis.derived_from.empty() && !the_case.axes.contains(axis.name))
      return mistake("it leaves out the axis " + axis.name);
  for (const Axis& axis : problem.axes)
    if (!axis.derived_from.empty()) {
      ASSIGN_OR_RETURN(the_case.axes[axis.name],
                       evaluate_expression(axis.derived_from, the_case.axes));
    }
  return the_case;
}

Result<std::vector<Case>> chosen_cases(const Problem& problem, const Options& options) {
  std::vector<Case> cases;
  if (options.has("--shape")) {
    ASSIGN_OR_RETURN(Case the_case, case_of_shape(problem, options.get("--shape")));
    cases.push_back(std::move(the_case));
  }
  std::vector<std::string> known;
  for (const Case& one : problem.cases) known.push_back(one.name);
  for (const std::string& name : options.all("--case")) {
    const Case* const found = problem.find_case(name);
    if (found == nullptr) {
      const auto close = closest_word(name, known);
      return Error{ErrorCode::bad_input, "find case '" + name + "'",
                   "problem " + problem.name + " has no such case",
                   close ? "did you mean " + *close + "?"
                         : fmt::format("choose among {}", fmt::join(known, ", "))};
    }
    cases.push_back(*found);
  }
  return cases.empty() ? problem.timed_cases() : cases;
}

struct Built {
  fs::path module;
  std::map<std::string, KernelResources> kernels;
  bool is_problem = false;
};

Result<KnobValues> read_knobs(const std::string& source, const Options& options) {
  KnobValues knobs;
  std::vector<std::string> names;
  for (const Knob& knob : scan_knobs(source).knobs) names.push_back(knob.name);
  for (const std::string& setting : options.all("--knob")) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    if (equals == std::string::npos || std::find(names.begin(), names.end(), name) == names.end())
      return Error{ErrorCode::bad_input, "read --knob " + setting,
                   equals == std::string::npos ? "it is not NAME=VALUE" : "there is no such knob",
                   fmt::format("the knobs are: {}", fmt::join(names, ", "))};
    knobs[name] = setting.substr(equals + 1);
  }
  return knobs;
}

Result<Built> build(const Problem& problem, const Home& home, const Options& options) {
  const fs::path file = options.get("FILE");
  if (file.extension() != ".cu")
    return Error{ErrorCode::bad_input, "plan " + file.string(), "it is no CUDA source",
                 "name a .cu file"};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      Compiler::make({.contract_include = home.contract_include, .cache = cache_folder()}));
  if (file.filename() == "problem.cu") {
    ASSIGN_OR_RETURN(const fs::path module, compiler->build_problem(fs::absolute(file)));
    return Built{module, {}, true};
  }
  ASSIGN_OR_RETURN(const std::string source, read_file(file));
  ASSIGN_OR_RETURN(KnobValues knobs, read_knobs(source, options));
  ASSIGN_OR_RETURN(Artifact artifact, compiler->build({.source = source,
                                                       .source_name = file.filename().string(),
                                                       .knobs = std::move(knobs),
                                                       .flags = problem.compile_flags,
                                                       .link = {}}));
  if (artifact.verdict != Verdict::accepted)
    return Error{
        ErrorCode::bad_input, "build " + file.string(),
        fmt::format("{}: {}\n{}", to_string(artifact.verdict), artifact.reason, artifact.log),
        "mend it"};
  return Built{artifact.module, std::move(artifact.kernels), false};
}

std::vector<Asked> ask_for(const Problem& problem, const Built& built, const Case& the_case,
                           const std::string& grade) {
  Asked asked{the_case.name, {}};
  asked.request.module = built.module;
  asked.request.kernels = built.kernels;
  asked.request.tensors = tensor_shapes(problem, the_case.axes);
  asked.request.axes = the_case.axes;
  // Shown, not judged: the table says what calls a library.
  asked.request.may_use_libraries = true;
  if (!built.is_problem) return {asked};
  asked.request.texts = {{"family", the_case.family}, {"grade", grade}};
  Asked generate = asked, full = asked, quick = asked;
  generate.title += ", generate";
  generate.request.entry = PlanEntry::generate;
  full.title += ", full check";
  full.request.entry = quick.request.entry = PlanEntry::check;
  full.request.texts["depth"] = "full";
  quick.title += ", quick check";
  quick.request.texts["depth"] = "quick";
  return {generate, full, quick};
}

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

// The name without return type and parameters.
std::string short_name(const PlanNode& node) {
  if (node.kind == NodeKind::vendor_call) return node.routine;
  if (node.kind != NodeKind::kernel) return std::string(to_string(node.kind));
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string name = node.kernel_name;
  for (std::size_t at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous))
    name.erase(at, kAnonymous.size());
  if (name.starts_with("void ")) name.erase(0, 5);
  return name.substr(0, name.rfind('('));
}

using Line = std::vector<std::string>;

void print_table(const std::vector<Line>& lines) {
  constexpr std::size_t kWidest = 44;
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const Line& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], std::min(kWidest, line[i].size()));
  for (const Line& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i)
      text += fmt::format("  {:<{}}", line[i], i + 1 == line.size() ? 0 : widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    fmt::print("{}\n", text);
  }
}

void print_nodes(const LaunchPlan& plan) {
  std::vector<Line> lines{
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
void print_kernels(const LaunchPlan& plan, const Built& built, const kbeam_device& device) {
  std::vector<Line> lines{
      {"kernel", "threads", "registers", "static shared", "spilled", "resident blocks"}};
  for (const PlanNode& node : plan.nodes) {
    const auto found = built.kernels.find(node.kernel);
    if (node.kind != NodeKind::kernel || found == built.kernels.end()) continue;
    const std::int64_t threads = std::int64_t{node.block[0]} * node.block[1] * node.block[2];
    Line line{
        short_name(node),
        std::to_string(threads),
        std::to_string(found->second.registers),
        std::to_string(found->second.static_shared_bytes),
        std::to_string(found->second.spill_bytes),
        std::to_string(resident_blocks(found->second, device, threads, node.dynamic_shared_bytes))};
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  if (lines.size() > 1) print_table(lines);
}

void print_plan(const Asked& asked, const Planned& planned, const Built& built,
                const kbeam_device& device) {
  if (!planned.plan) {
    fmt::print("{}: {}: {}\n", asked.title, to_string(planned.verdict), planned.sentence);
    return;
  }
  const LaunchPlan& plan = *planned.plan;
  fmt::print("{}: {} node{}, {} bytes of scratch{}\n", asked.title, plan.nodes.size(),
             plan.nodes.size() == 1 ? "" : "s", plan.scratch_bytes(),
             plan.uses_library() ? "; calls a library, so it cannot ship" : "");
  print_nodes(plan);
  print_kernels(plan, built, device);
  for (const PlanFigure& figure : plan.figures)
    fmt::print("  figure {}: at most {:g} {} for each of {}\n", figure.name, figure.limit,
               figure.unit, fmt::join(figure.radix_names, ", "));
  for (const auto& [key, value] : plan.notes) fmt::print("  note {}: {}\n", key, value);
}

void print_json(const std::vector<Asked>& asked, const std::vector<Planned>& answers) {
  Json plans = Json::array();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Json one{{"case", asked[i].title}, {"verdict", to_string(answers[i].verdict)}};
    if (answers[i].plan) {
      one["hash"] = launch_plan_hash(*answers[i].plan);
      one["scratch_bytes"] = answers[i].plan->scratch_bytes();
      one["plan"] = to_json(*answers[i].plan);
    } else {
      one["sentence"] = answers[i].sentence;
    }
    plans.push_back(std::move(one));
  }
  fmt::print("{}\n", json_text(Json{{"plans", std::move(plans)}}));
}

// Whether every plan was accepted.
Result<bool> plan_file(const Options& options) {
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(const Problem problem, open_cuda_problem(options, home));
  ASSIGN_OR_RETURN(const std::string grade, choose_grade(problem, options.get("--grade")));
  ASSIGN_OR_RETURN(const std::vector<Case> cases, chosen_cases(problem, options));
  ASSIGN_OR_RETURN(const Built built, build(problem, home, options));
  PlannerOptions planner{.planner = home.planner,
                         .device_description = home.devices / (options.get("--gpu") + ".json"),
                         .limits = {}};
  ASSIGN_OR_RETURN(const DeviceDescription device,
                   read_device_description(planner.device_description));
  std::vector<Asked> asked;
  for (const Case& the_case : cases)
    for (Asked& one : ask_for(problem, built, the_case, grade)) asked.push_back(std::move(one));
  std::vector<PlanRequest> requests;
  for (const Asked& one : asked) requests.push_back(one.request);
  ASSIGN_OR_RETURN(const std::vector<Planned> answers, make_launch_plans(planner, requests));
  if (options.json()) {
    print_json(asked, answers);
  } else {
    for (std::size_t i = 0; i < asked.size(); ++i)
      print_plan(asked[i], answers[i], built, device.device);
  }
  return std::all_of(answers.begin(), answers.end(),
                     [](const Planned& planned) { return planned.verdict == Verdict::accepted; });
}

}  // namespace

int plan_command(const Options& options) {
  const Result<bool> all_accepted = plan_file(options);
  if (!all_accepted.ok()) return report_error(all_accepted.error(), options);
  return *all_accepted ? kDone : kNo;
}

}  // namespace kbeam::cli
