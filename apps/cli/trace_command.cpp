// kbeam trace: records long A/A traces, a candidate against itself, by the path that confirmations
// take. Decides nothing; `kbeam study` does.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <ctime>
#include <map>
#include <vector>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/cuda_plans.h"
#include "base/hash.h"
#include "loop/research_loop.h"
#include "measure/pair_trace.h"
#include "measure/stopping_rule.h"

namespace kbeam::cli {
namespace {

// Processes of one comparison; a trace is many of them, so that what goes wrong late costs little.
constexpr int kProcessesAtOnce = 24;

struct Recording {
  std::unique_ptr<BenchTools> tools;
  Candidate candidate;
  std::vector<Case> cases;
  std::size_t pairs = 0;  // wanted of each case
  std::map<std::string, PairTrace> traces;
};

Result<Recording> open_recording(const Options& options) {
  Recording recording;
  ASSIGN_OR_RETURN(recording.tools, open_bench_tools({.problem = options.get("--problem"),
                                                      .grade = options.get("--grade")}));
  const Problem& problem = recording.tools->problem;
  ASSIGN_OR_RETURN(recording.candidate,
                   recording.tools->read_candidate(options.get("FILE"), options.all("--knob")));
  ASSIGN_OR_RETURN(recording.pairs, parse_count(options.get("--pairs"), "--pairs"));
  for (const std::string& shape : options.all("--shape")) {
    ASSIGN_OR_RETURN(Case the_case, case_of_shape(problem, shape));
    recording.cases.push_back(std::move(the_case));
  }
  if (recording.cases.empty()) recording.cases = problem.timed_cases();
  const BuiltCandidate built = recording.tools->builds->build_now(recording.candidate);
  if (built.engine_error) return *built.engine_error;
  if (const Artifact* const failed = built.failed())
    return Error{ErrorCode::bad_input, "build " + options.get("FILE"),
                 failed->reason + "\n" + failed->log, "mend it: see kbeam check"};
  ASSIGN_OR_RETURN(const std::string source, read_file(options.get("FILE")));
  ASSIGN_OR_RETURN(const Environment machine,
                   probe_environment(recording.tools->target.compiler->version(), {}));
  for (const Case& the_case : recording.cases)
    recording.traces[the_case.name] = {
        .condition = options.get("--condition"),
        .problem = problem.name,
        .case_name = the_case.name,
        .facts = {{"source", std::filesystem::path(options.get("FILE")).filename().string()},
                  {"source_hash", sha256_hex(source)},
                  {"cpu", machine.cpu},
                  {"cpus", std::to_string(share_cpus().candidates.size())},
                  {"kernel", machine.kernel},
                  {"compiler", machine.compiler},
                  {"began", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}},
        .samples = {}};
  return recording;
}

void append(PairTrace& trace, const PairedSamples& samples, int first_process) {
  PairedSamples& to = trace.samples;
  for (std::size_t i = 0; i < samples.candidate_ns.size(); ++i) {
    to.candidate_ns.push_back(samples.candidate_ns[i]);
    to.reference_ns.push_back(samples.reference_ns[i]);
    to.candidate_first.push_back(samples.candidate_first[i]);
    to.process.push_back(first_process + samples.process[i]);
  }
}

Result<void> record(Recording& recording) {
  // As many pairs a process as the longest of a promotion takes, none skipped.
  const StoppingRule promote = sequential_rule("promote");
  const Subject subject =
      recording.tools->builds->subject_of(recording.candidate, recording.candidate.id);
  CompareRequest request{.candidate = subject, .reference = subject};
  request.timed_cases = recording.cases;
  request.rule = {.name = "trace",
                  .pairs_per_process = pairs_in_process(promote, process_count(promote) - 1),
                  .processes = kProcessesAtOnce,
                  .fresh_base = true};
  const PairTrace& first = recording.traces.at(recording.cases.front().name);
  for (int process = 0; first.samples.candidate_ns.size() < recording.pairs;
       process += kProcessesAtOnce) {
    const Evaluation evaluation = recording.tools->target.judge->compare(request);
    if (evaluation.verdict != Verdict::accepted)
      return Error{ErrorCode::unavailable, "time " + recording.candidate.id + " against itself",
                   std::string(to_string(evaluation.verdict)) + ": " + evaluation.reason,
                   "see kbeam check and kbeam doctor"};
    for (const Measurement& measurement : evaluation.measurements) {
      PairTrace& trace = recording.traces.at(measurement.case_name);
      append(trace, measurement.samples, process);
      trace.facts["sandbox"] = to_string(evaluation.sandbox);
    }
    fmt::print(stderr, "{} of {} pairs a case\n", first.samples.candidate_ns.size(),
               recording.pairs);
  }
  return {};
}

// "idle_softmax_rows=64-columns=512.trace"
std::string file_name(const PairTrace& trace) {
  std::string name = trace.condition + "_" + trace.problem + "_" + trace.case_name;
  for (char& letter : name)
    if (letter == ',') letter = '-';
  return name + ".trace";
}

Result<int> trace_file(const Options& options) {
  ASSIGN_OR_RETURN(Recording recording, open_recording(options));
  RETURN_IF_ERROR(record(recording));
  const std::filesystem::path folder = options.get("--to");
  std::error_code trouble;
  std::filesystem::create_directories(folder, trouble);
  for (const auto& [name, trace] : recording.traces) {
    const std::filesystem::path file = folder / file_name(trace);
    RETURN_IF_ERROR(write_file(file, encode_trace(trace)));
    fmt::print("{}: {} pairs\n", file.string(), trace.samples.candidate_ns.size());
  }
  return kDone;
}

}  // namespace

int trace_command(const Options& options) {
  const Result<int> code = trace_file(options);
  return code.ok() ? *code : report_error(code.error(), options);
}

}  // namespace kbeam::cli
