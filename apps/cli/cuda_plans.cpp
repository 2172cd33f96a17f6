#include "apps/cli/cuda_plans.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "apps/cli/bench_tools.h"
#include "apps/cli/refusals.h"
#include "base/expression.h"
#include "base/spelling.h"
#include "build/compiler.h"
#include "build/source_scan.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

// The problem whose folder the file lies in.
Result<std::string> problem_of(const Options& options) {
  if (options.has("--problem")) return options.get("--problem");
  std::error_code ignored;
  const fs::path file = fs::absolute(options.get("FILE"));
  for (fs::path folder = file.parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "problem.toml", ignored)) return folder.string();
  return Error{ErrorCode::bad_input, "find the problem of " + options.get("FILE"),
               "it lies in no problem's folder", "name the problem with --problem"};
}

Result<Problem> open_cuda_problem(const Options& options, const Home& home) {
  ASSIGN_OR_RETURN(const std::string named, problem_of(options));
  Result<Problem> as_cuda = open_problem(named, home, "cuda");
  // The first CUDA candidate of a problem is planned before the problem is one for CUDA.
  return as_cuda.ok() ? std::move(as_cuda) : open_problem(named, home);
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

Result<void> build(PlannedFile& planned, const Options& options) {
  const fs::path file = options.get("FILE");
  if (file.extension() != ".cu")
    return Error{ErrorCode::bad_input, "plan " + file.string(), "it is no CUDA source",
                 "name a .cu file"};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Compiler> compiler,
      Compiler::make({.contract_include = planned.home.contract_include, .cache = cache_folder()}));
  if (file.filename() == "problem.cu") {
    ASSIGN_OR_RETURN(planned.module, compiler->build_problem(fs::absolute(file)));
    planned.is_problem = true;
    return {};
  }
  ASSIGN_OR_RETURN(const std::string source, read_file(file));
  ASSIGN_OR_RETURN(KnobValues knobs, read_knobs(source, options));
  ASSIGN_OR_RETURN(Artifact artifact, compiler->build({.source = source,
                                                       .source_name = file.filename().string(),
                                                       .knobs = std::move(knobs),
                                                       .flags = planned.problem.compile_flags,
                                                       .link = {}}));
  if (artifact.verdict != Verdict::accepted)
    return refused_build(file.string(), artifact.verdict, artifact.reason, artifact.log);
  planned.module = artifact.module;
  planned.kernels = std::move(artifact.kernels);
  return {};
}

std::vector<PlannedCase> ask_for(const PlannedFile& planned, const Case& the_case,
                                 const std::string& grade) {
  PlannedCase asked{.title = the_case.name, .the_case = the_case, .request = {}, .planned = {}};
  asked.request.module = planned.module;
  asked.request.kernels = planned.kernels;
  asked.request.tensors = tensor_shapes(planned.problem, the_case.axes);
  asked.request.axes = the_case.axes;
  // Shown, not judged: the table says what calls a library.
  asked.request.may_use_libraries = true;
  if (!planned.is_problem) return {asked};
  asked.request.texts = {{"family", the_case.family}, {"grade", grade}};
  PlannedCase generate = asked, full = asked, quick = asked;
  generate.title += ", generate";
  generate.request.entry = PlanEntry::generate;
  full.title += ", full check";
  full.request.entry = quick.request.entry = PlanEntry::check;
  full.request.texts["depth"] = "full";
  quick.title += ", quick check";
  quick.request.texts["depth"] = "quick";
  return {generate, full, quick};
}

}  // namespace

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
                   names.empty() ? "the file declares no knob (KBEAM_KNOB)"
                                 : fmt::format("the knobs are: {}", fmt::join(names, ", "))};
    knobs[name] = setting.substr(equals + 1);
  }
  return knobs;
}

Result<PlannedFile> plan_cuda_file(const Options& options) {
  PlannedFile file;
  ASSIGN_OR_RETURN(file.home, find_home());
  ASSIGN_OR_RETURN(file.problem, open_cuda_problem(options, file.home));
  ASSIGN_OR_RETURN(const std::string grade, choose_grade(file.problem, options.get("--grade")));
  ASSIGN_OR_RETURN(const std::vector<Case> cases, chosen_cases(file.problem, options));
  ASSIGN_OR_RETURN(file.device_description,
                   find_device_description(file.home, options.get("--gpu")));
  RETURN_IF_ERROR(build(file, options));
  PlannerOptions planner{
      .planner = file.home.planner, .device_description = file.device_description, .limits = {}};
  ASSIGN_OR_RETURN(file.device, read_device_description(planner.device_description));
  for (const Case& the_case : cases)
    for (PlannedCase& one : ask_for(file, the_case, grade)) file.plans.push_back(std::move(one));
  std::vector<PlanRequest> requests;
  for (const PlannedCase& one : file.plans) requests.push_back(one.request);
  ASSIGN_OR_RETURN(std::vector<Planned> answers, make_launch_plans(planner, requests));
  for (std::size_t i = 0; i < answers.size(); ++i) file.plans[i].planned = std::move(answers[i]);
  return file;
}

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

void print_table(const std::vector<TableLine>& lines) {
  constexpr std::size_t kWidest = 44;
  std::vector<std::size_t> widths(lines.front().size(), 0);
  for (const TableLine& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], std::min(kWidest, line[i].size()));
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i)
      text += fmt::format("  {:<{}}", line[i], i + 1 == line.size() ? 0 : widths[i]);
    text.erase(text.find_last_not_of(' ') + 1);
    fmt::print("{}\n", text);
  }
}

}  // namespace kbeam::cli
