#include "session/sanitizer_gate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "base/hash.h"
#include "base/process.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

// What a sanitizer would see anew: the same kernel with other blocks or clusters takes other
// branches.
std::set<std::string> launches_of(const LaunchPlan& plan) {
  std::set<std::string> launches;
  for (const PlanNode& node : plan.nodes)
    if (node.kind == NodeKind::kernel)
      launches.insert(fmt::format("{} {}x{}x{} {}x{}x{}", node.kernel, node.block[0], node.block[1],
                                  node.block[2], node.cluster[0], node.cluster[1],
                                  node.cluster[2]));
  return launches;
}

constexpr std::string_view kInitcheck = "initcheck";

struct Tool {
  const char* name;
  Verdict verdict;      // when it finds something
  const char* options;  // beside its name
  // Where a case takes minutes, not a second: cases go one by one, so that the first that fails
  // ends it and is known.
  bool slow;
};
// The worker asks the driver questions that end in an error, which is no fault of a kernel. The
// count of barriers that the tools find by themselves leaves out those of a cluster's other blocks.
constexpr Tool kTools[] = {{"memcheck", Verdict::wrote_outside, " --report-api-errors no", false},
                           {"racecheck", Verdict::race, " --num-cuda-barriers 1024", true},
                           {"initcheck", Verdict::not_repeatable, "", false},
                           {"synccheck", Verdict::race, " --num-cuda-barriers 1024", false}};

// What one plain run says, as kbeam-worker --plain --json prints it.
struct PlainRun {
  Verdict verdict = Verdict::engine_failed;
  std::string reason;
  Json output_hashes;
  std::optional<int> wrapper_exit_code;
  std::string wrapper_output;
};

Result<PlainRun> run_plain(const SanitizerGate& gate, const std::filesystem::path& task_folder,
                           const Tool* tool) {
  std::vector<std::string> command{gate.worker.string(),        "--plain",
                                   task_folder.string(),        "--device",
                                   std::to_string(gate.device), "--json"};
  if (tool != nullptr) {
    command.push_back("--wrapper");
    command.push_back(fmt::format("{} --tool {} --error-exitcode 86{}", gate.sanitizer.string(),
                                  tool->name, tool->options));
  }
  const std::string attempted = tool == nullptr ? std::string("run the promotion's cases once")
                                                : fmt::format("run {}", tool->name);
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_process({.command = command,
                                .folder = {},
                                .environment = {"PATH=/usr/local/cuda/bin:/usr/bin:/bin"},
                                .timeout_s = gate.timeout_s,
                                .cancelled = gate.give_up,
                                .before_exec = {}}));
  if (outcome.timed_out)
    return Error{ErrorCode::unavailable, attempted,
                 fmt::format("it did not end within {:.0f} s", gate.timeout_s),
                 "see `kbeam doctor`"};
  const std::size_t begin = outcome.output.find('{');
  if (begin == std::string::npos)
    return Error{ErrorCode::unavailable, attempted, "kbeam-worker said: " + outcome.output,
                 "see `kbeam doctor`"};
  ASSIGN_OR_RETURN(const Json json, parse_json(outcome.output.substr(begin), "the plain run"));
  PlainRun run;
  run.verdict = parse_verdict(json.value("verdict", "")).value_or(Verdict::engine_failed);
  run.reason = json.value("reason", "");
  run.output_hashes = json.value("output_hashes", Json::object());
  if (json.contains("wrapper_exit_code") && json["wrapper_exit_code"].is_number())
    run.wrapper_exit_code = json["wrapper_exit_code"].get<int>();
  run.wrapper_output = json.value("wrapper_output", "");
  return run;
}

// The first line in which a tool complains: "========= Invalid __global__ write of size 4 bytes".
std::string first_complaint(const std::string& output) {
  constexpr std::string_view kMark = "========= ";
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kMark) && line.find("COMPUTE-SANITIZER") == std::string::npos)
      return line.substr(kMark.size());
  return "no line of its report was kept";
}

GateResult judge(const Tool& tool, const PlainRun& watched, const Json& hashes_alone) {
  if (watched.wrapper_exit_code.value_or(0) != 0)
    return {.name = tool.name,
            .verdict = tool.verdict,
            .sentence = first_complaint(watched.wrapper_output)};
  if (watched.verdict != Verdict::accepted)
    return {.name = tool.name, .verdict = watched.verdict, .sentence = watched.reason};
  if (watched.output_hashes != hashes_alone)
    return {.name = tool.name,
            .verdict = Verdict::not_repeatable,
            .sentence = "the outputs differ from those without the tool"};
  return {.name = tool.name,
          .verdict = Verdict::accepted,
          .sentence = "found nothing; outputs as without the tool"};
}

void say(const SanitizerGate& gate, const std::string& line) {
  if (gate.say) gate.say(line);
}

// The place that says that the tool was content with the case; empty where nothing is kept.
std::filesystem::path kept_word(const SanitizerGate& gate, const Tool& tool,
                                const std::string& case_name) {
  if (gate.kept.empty() || !gate.launches_of) return {};
  const std::string key =
      Hasher().field(tool.name).field(tool.options).field(gate.launches_of(case_name)).hex();
  return gate.kept / key;
}

// One case after the other, until the tool finds something.
struct CaseFinding {
  std::string failed_case;  // empty: there is none
  GateResult result;        // of the failed case, else of the last
};
Result<CaseFinding> watch_each_case(const SanitizerGate& gate, const Tool& tool,
                                    const std::vector<std::string>& cases, const Json& hashes_alone,
                                    const WritePlainTask& write_task) {
  CaseFinding finding;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::filesystem::path word = kept_word(gate, tool, cases[i]);
    std::error_code trouble;
    if (!word.empty() && std::filesystem::is_regular_file(word, trouble)) {
      finding.result = {.name = tool.name,
                        .verdict = Verdict::accepted,
                        .sentence = "found nothing; outputs as without the tool"};
      continue;
    }
    say(gate, fmt::format("{}: case {} of {}, {}", tool.name, i + 1, cases.size(), cases[i]));
    ASSIGN_OR_RETURN(const std::filesystem::path folder, write_task({cases[i]}));
    ASSIGN_OR_RETURN(const PlainRun watched, run_plain(gate, folder, &tool));
    finding.result =
        judge(tool, watched, {{cases[i], hashes_alone.value(cases[i], std::string())}});
    if (finding.result.verdict == Verdict::accepted) {
      // A word that cannot be kept is only asked for again.
      if (!word.empty()) (void)write_file(word, cases[i] + "\n");
      continue;
    }
    finding.failed_case = cases[i];
    break;
  }
  return finding;
}

// A quick tool sees all cases in one run. Only where it finds something they go one by one; what it
// found is kept where none of them shows it alone.
Result<CaseFinding> watch_all_cases(const SanitizerGate& gate, const Tool& tool,
                                    const std::vector<std::string>& cases,
                                    const std::filesystem::path& folder, const Json& hashes_alone,
                                    const WritePlainTask& write_task) {
  say(gate, fmt::format("{}: {} cases", tool.name, cases.size()));
  ASSIGN_OR_RETURN(const PlainRun watched, run_plain(gate, folder, &tool));
  CaseFinding together{.failed_case = {}, .result = judge(tool, watched, hashes_alone)};
  if (together.result.verdict == Verdict::accepted) return together;
  if (cases.size() == 1) together.failed_case = cases.front();
  if (cases.size() < 2) return together;
  ASSIGN_OR_RETURN(CaseFinding alone, watch_each_case(gate, tool, cases, hashes_alone, write_task));
  return alone.failed_case.empty() ? together : alone;
}

struct CoveringCase {
  std::string name;
  double work = 0;  // a tool's time goes with the arithmetic, and not with the memory
  std::set<std::string> launches;
};

}  // namespace

std::vector<std::string> choose_sanitizer_cases(const EvaluationTask& task,
                                                const TaskFiles& files) {
  std::vector<CoveringCase> cases;
  std::set<std::string> wanted;
  for (const TaskCase& task_case : task.cases) {
    const auto planned = task.candidate.plan_of_case.find(task_case.the_case.name);
    if (planned == task.candidate.plan_of_case.end()) continue;
    CoveringCase one{task_case.the_case.name, task_case.flops,
                     launches_of(files.plans.at(planned->second))};
    wanted.insert(one.launches.begin(), one.launches.end());
    cases.push_back(std::move(one));
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const CoveringCase& a, const CoveringCase& b) { return a.work < b.work; });
  std::vector<std::string> chosen;
  for (const CoveringCase& one : cases) {
    bool brings_something = false;
    for (const std::string& launch : one.launches) brings_something |= wanted.erase(launch) > 0;
    if (brings_something) chosen.push_back(one.name);
  }
  return chosen;
}

Result<SanitizerFindings> pass_sanitizers(const SanitizerGate& gate,
                                          const std::vector<std::string>& cases,
                                          const WritePlainTask& write_task) {
  std::error_code trouble;  // without the folder nothing is kept
  if (!gate.kept.empty()) std::filesystem::create_directories(gate.kept, trouble);
  SanitizerFindings findings;
  std::vector<GateResult>& results = findings.results;
  ASSIGN_OR_RETURN(const std::filesystem::path folder, write_task(cases));
  ASSIGN_OR_RETURN(const PlainRun alone, run_plain(gate, folder, nullptr));
  if (alone.verdict != Verdict::accepted) {
    results.push_back({.name = "plain memory", .verdict = alone.verdict, .sentence = alone.reason});
    return findings;
  }
  for (const Tool& tool : kTools) {
    if (tool.name == kInitcheck && !gate.watch_initialisation) continue;
    const auto began = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(
        CaseFinding finding,
        tool.slow ? watch_each_case(gate, tool, cases, alone.output_hashes, write_task)
                  : watch_all_cases(gate, tool, cases, folder, alone.output_hashes, write_task));
    findings.failed_case = finding.failed_case;
    GateResult& result = results.emplace_back(std::move(finding.result));
    result.cases = static_cast<int>(alone.output_hashes.size());
    result.took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (result.verdict != Verdict::accepted) break;
  }
  return findings;
}

}  // namespace kbeam
