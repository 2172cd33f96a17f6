#include "apps/cli/bench_tools.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/affinity.h"
#include "base/spelling.h"
#include "build/source_scan.h"
#include "model/json_forms.h"
#include "problem/problem_file.h"

namespace kbeam::cli {

int report_error(const Error& error, const Options& options) {
  if (options.json())
    fmt::print("{}\n", json_text(Json{{"error",
                                       {{"attempted", error.attempted},
                                        {"happened", error.happened},
                                        {"advice", error.advice}}}}));
  fmt::print(stderr, "kbeam: {}\n", error.text());
  return error.code == ErrorCode::bad_input || error.code == ErrorCode::not_found ? kBadInput
                                                                                  : kCannotWork;
}

Result<double> parse_duration(const std::string& text, const std::string& option) {
  double number = 0;
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(rest, text.data() + text.size());
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  constexpr double kMost_s = 1e8;  // three years: beyond, sums of nanoseconds run over
  if (trouble != std::errc() || scale == 0 || !(number > 0 && number * scale <= kMost_s))
    return Error{ErrorCode::bad_input, "read " + option, "'" + text + "' is no duration",
                 "write for instance 180s, 3m or 1h"};
  return number * scale;
}

Result<std::uint64_t> parse_number(const std::string& text, const std::string& option) {
  std::uint64_t number = 0;
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || rest != text.data() + text.size())
    return Error{ErrorCode::bad_input, "read " + option, "'" + text + "' is no whole number",
                 "write it in digits alone, such as 1000000"};
  return number;
}

Result<int> parse_count(const std::string& text, const std::string& option, int most) {
  ASSIGN_OR_RETURN(const std::uint64_t number, parse_number(text, option));
  if (number == 0 || number > static_cast<std::uint64_t>(most))
    return Error{ErrorCode::bad_input, "read " + option,
                 text + (number == 0 ? " is none" : " is too many"),
                 fmt::format("write a number from 1 to {}{}", most,
                             number == 0 ? "; without the option there is no such limit, or what "
                                           "the help says"
                                         : "")};
  return static_cast<int>(number);
}

Result<Problem> open_problem(const std::string& named, const Home& home,
                             const std::string& target) {
  ASSIGN_OR_RETURN(const std::filesystem::path folder, find_problem_folder(named, home.problems));
  ASSIGN_OR_RETURN(LoadedProblem loaded, load_problem(folder));
  if (!loaded.mistakes.empty())
    return Error{
        ErrorCode::bad_input, "read problem " + folder.string(),
        fmt::format("{} mistake{}\n{}", loaded.mistakes.size(),
                    loaded.mistakes.size() == 1 ? "" : "s", render_mistakes(loaded.mistakes)),
        "mend them; docs/problem.md explains every key"};
  if (!serves(loaded.problem.targets, target))
    return Error{ErrorCode::bad_input, "open problem " + loaded.problem.name + " for " + target,
                 fmt::format("it is for {}", fmt::join(loaded.problem.targets, ", ")),
                 "choose another --target; docs/problem.md says how a problem gets one"};
  return for_target(loaded.problem, target);
}

Result<Problem> problem_of_run(const CampaignConfig& recorded, const Options& options,
                               const Home& home) {
  if (options.has("--problem"))
    return open_problem(options.get("--problem"), home, recorded.target);
  std::error_code trouble;
  const std::filesystem::path folder =
      std::filesystem::weakly_canonical(recorded.problem_folder, trouble);
  if (trouble || folder.parent_path() != std::filesystem::weakly_canonical(home.problems, trouble))
    return Error{ErrorCode::bad_input, "open the problem of run " + recorded.run_id,
                 "the archive names " + recorded.problem_folder +
                     ", which is no problem of this installation, and its code would run here",
                 "if you trust that folder, say so: --problem " + recorded.problem_folder};
  return open_problem(folder.string(), home, recorded.target);
}

Result<std::string> choose_grade(const Problem& problem, const std::string& named) {
  if (named.empty()) return problem.grades.empty() ? std::string() : problem.grades.front().name;
  std::vector<std::string> names;
  for (const GradeSpec& grade : problem.grades) names.push_back(grade.name);
  if (std::find(names.begin(), names.end(), named) != names.end()) return named;
  const auto close = closest_word(named, names);
  return Error{ErrorCode::bad_input, "choose grade '" + named + "'",
               "problem " + problem.name + " has no such grade",
               close ? "did you mean " + *close + "?"
                     : fmt::format("choose one of {}", fmt::join(names, ", "))};
}

namespace {

CpuShare find_share() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CpuShare share;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu)
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) share.candidates.push_back(cpu);
  if (share.candidates.empty()) share.candidates = {0};
  share.judge = share.candidates.back();
  return share;
}

}  // namespace

// Asked once: later this thread is pinned to its own share.
const CpuShare& share_cpus() {
  static const CpuShare share = find_share();
  return share;
}

Result<Candidate> BenchTools::read_candidate(const std::string& file,
                                             const std::vector<std::string>& knobs) const {
  ASSIGN_OR_RETURN(const std::string source, read_file(file));
  const SourceKnobs scanned = scan_knobs(source);
  Row row{source, std::filesystem::path(file).filename().string(), {}};
  for (const std::string& setting : knobs) {
    const std::size_t equals = setting.find('=');
    const std::string name = setting.substr(0, equals);
    std::vector<std::string> names;
    for (const Knob& knob : scanned.knobs) names.push_back(knob.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (equals == std::string::npos || found == names.end()) {
      const auto close = closest_word(name, names);
      return Error{
          ErrorCode::bad_input, "read --knob " + setting,
          equals == std::string::npos ? "it is not NAME=VALUE" : file + " has no knob " + name,
          close ? "did you mean " + *close + "?"
                : fmt::format("its knobs are: {}", fmt::join(names, ", "))};
    }
    row.knobs[name] = setting.substr(equals + 1);
  }
  Candidate candidate;
  candidate.family = row.source_name;
  candidate.origin = "manual";
  candidate.rows.push_back(std::move(row));
  candidate.id = candidate_id(candidate);
  return candidate;
}

Result<std::unique_ptr<BenchTools>> open_bench_tools(const BenchRequest& request) {
  auto tools = std::make_unique<BenchTools>();
  ASSIGN_OR_RETURN(tools->home, find_home());
  ASSIGN_OR_RETURN(tools->problem, open_problem(request.problem, tools->home, request.target));
  ASSIGN_OR_RETURN(tools->grade, choose_grade(tools->problem, request.grade));
  ASSIGN_OR_RETURN(
      tools->target,
      open_target({.problem = tools->problem,
                   .home = tools->home,
                   .clock = tools->clock,
                   .target = request.target,
                   .cache = cache_folder(),
                   .grade = tools->grade,
                   .seed = request.seed,
                   .fixed_key = request.key,
                   .candidate_cpus = share_cpus().candidates,
                   .builds_give_way = request.builds_give_way,
                   .builds_cancelled = {},
                   .give_up = {},
                   .say = {},
                   .on_lock_wait = [said = std::string()](const std::string& holder) mutable {
                     if (std::exchange(said, holder) != holder)  // once a holder
                       fmt::print(stderr,
                                  "waiting for the timing lock of this machine, held by {}\n",
                                  holder);
                   }}));
  tools->meter = std::make_unique<ActivityMeter>(tools->clock);
  tools->builds = std::make_unique<BuildQueue>(*tools->target.compiler,
                                               tools->problem.compile_flags, *tools->meter);
  pin_this_thread(share_cpus().judge);  // as a campaign does: decision 0003
  return tools;
}

std::vector<OptionSpec> candidate_options() {
  return {
      {"--problem", "NAME|FOLDER", "the problem that it solves", "", OptionSpec::Kind::required},
      {"--knob", "NAME=VALUE", "sets a knob; may be given again", "", OptionSpec::Kind::repeated},
      {"--grade", "NAME", "which of the problem's grades judges it", ""}};
}

}  // namespace kbeam::cli
