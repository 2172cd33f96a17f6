#include "attacks/bench.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/defence.h"
#include "base/entropy.h"
#include "base/files.h"
#include "problem/problem_file.h"
#include "session/cpu_judge.h"
#include "session/sealed_cases.h"

namespace kbeam::attacks {
namespace {

namespace fs = std::filesystem;

// Enough for every trick that waits for its moment, few enough for a hundred candidates.
StoppingRule rule() {
  return {.name = "attacks", .pairs_per_process = 6, .processes = 1, .fresh_base = true};
}

// A candidate is one text: `#include "x.h"` is replaced by the file, from beside the source or from
// the engine.
Result<std::string> paste_headers(const fs::path& file, const fs::path& engine) {
  ASSIGN_OR_RETURN(const std::string source, read_file(file));
  constexpr std::string_view kInclude = "#include \"";
  std::string text;
  std::size_t at = 0;
  while (at < source.size()) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = std::string_view(source).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(kInclude)) {
      text += line != "#pragma once" ? std::string(line) + "\n" : "\n";
      continue;
    }
    const std::string name(line.substr(kInclude.size(), line.rfind('"') - kInclude.size()));
    const fs::path beside = file.parent_path() / name;
    ASSIGN_OR_RETURN(const std::string header,
                     paste_headers(fs::exists(beside) ? beside : engine / name, engine));
    text += header;
  }
  return text;
}

// Two workers where there are two processors; else two that share one.
std::vector<int> candidate_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && cpus.size() < 2; --cpu)
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  while (cpus.size() < 2) cpus.push_back(cpus.empty() ? 0 : cpus.front());
  return cpus;
}

Subject subject_of(const std::string& id, Row row, const fs::path& module) {
  return {.id = id, .rows = {std::move(row)}, .modules = {module}};
}

std::vector<Case> untimed(const Problem& problem) {
  std::vector<Case> cases;
  for (const Case& the_case : problem.cases)
    if (!the_case.timed) cases.push_back(the_case);
  return cases;
}

CompareRequest promotion_of(const Problem& problem, const Subject& candidate,
                            const Subject& reference) {
  SealedCases sealed = draw_sealed_cases(problem, candidate.rows, random_bits());
  CompareRequest request{.candidate = candidate,
                         .reference = reference,
                         .check_cases = untimed(problem),
                         .timed_cases = problem.timed_cases(),
                         .held_out = std::move(sealed.timed),
                         .rule = rule(),
                         .stage = Stage::promote};
  std::move(sealed.checked.begin(), sealed.checked.end(), std::back_inserter(request.check_cases));
  return request;
}

}  // namespace

Job job_of(const Attack& attack, const fs::path& folder) {
  return {folder / "cpu" / (attack.name + ".cpp"), attack.knobs, attack.limits, attack.stage};
}

Job twin_of(const Attack& attack, const fs::path& folder) {
  if (!attack.twin.empty())
    return {folder / "honest" / (attack.twin + ".cpp"), {}, {}, attack.stage};
  Job job = job_of(attack, folder);
  job.knobs["kCheat"] = "0";
  job.limits = {};
  return job;
}

Result<std::unique_ptr<Bench>> Bench::open(const BenchOptions& options) {
  std::unique_ptr<Bench> bench(new Bench(options));
  const fs::path folder = options.source / "tests/attacks/problem";
  ASSIGN_OR_RETURN(LoadedProblem loaded, load_problem(folder));
  if (!loaded.mistakes.empty())
    return Error{ErrorCode::bad_input, "read " + folder.string(), render_mistakes(loaded.mistakes),
                 "mend problem.toml"};
  bench->problem_ = std::move(loaded.problem);
  ASSIGN_OR_RETURN(bench->compiler_, bench->make_compiler({}));
  ASSIGN_OR_RETURN(const fs::path module, bench->compiler_->build_problem(folder / "problem.cpp"));
  ASSIGN_OR_RETURN(bench->library_, ProblemLibrary::load(module));
  ASSIGN_OR_RETURN(const Artifact plain, bench->build({.file = folder / "baselines/plain.cpp"}));
  if (plain.verdict != Verdict::accepted)
    return Error{ErrorCode::internal, "build the baseline of the corpus", plain.reason,
                 "correct baselines/plain.cpp"};
  bench->baseline_ = plain.module;
  return bench;
}

Result<std::unique_ptr<Compiler>> Bench::make_compiler(const Limits& limits) const {
  return Compiler::make(
      {.contract_include = options_.source / "contract/include",
       .cache = options_.cache,
       .limits = {limits.build_timeout_s, limits.build_memory_bytes, limits.build_output_bytes}});
}

BuildRequest Bench::request_for(const Row& row) const {
  return {.source = row.source,
          .source_name = row.source_name,
          .knobs = row.knobs,
          .flags = problem_.compile_flags,
          .link = {}};
}

Result<Row> Bench::row_for(const Job& job) const {
  ASSIGN_OR_RETURN(std::string source, paste_headers(job.file, options_.source / "engine"));
  return Row{
      .source = std::move(source), .source_name = job.file.filename().string(), .knobs = job.knobs};
}

Result<Artifact> Bench::build(const Job& job) {
  ASSIGN_OR_RETURN(const Row row, row_for(job));
  const BuildRequest request = request_for(row);
  if (job.limits == Limits{}) return compiler_->build(request);
  ASSIGN_OR_RETURN(const auto compiler, make_compiler(job.limits));
  return compiler->build(request);
}

Finding Bench::judge(const Job& job, ProblemLibrary* mutant) {
  const Result<Artifact> artifact = build(job);
  if (!artifact.ok()) return {"engine_failed", artifact.error().text()};
  if (artifact->verdict != Verdict::accepted)
    return {std::string(to_string(artifact->verdict)), artifact->reason};
  return evaluate(job, artifact->module, mutant == nullptr ? library_->code() : mutant->code());
}

Finding Bench::evaluate(const Job& job, const fs::path& module, ProblemCode& code) {
  JudgeOptions options;
  options.runner = options_.runner;
  options.candidate_cpus = candidate_cpus();
  options.least_sandbox = SandboxLevel::none;
  options.grade = problem_.grades.front().name;
  options.call_timeout_s = job.limits.call_timeout_s;
  options.build_watched = [this](const Row& row, Watch watch) {
    return compiler_->build_watched(request_for(row), watch);
  };
  CpuJudge judge(problem_, code, options, clock_);
  const Result<Row> row = row_for(job);
  if (!row.ok()) return {"engine_failed", row.error().text()};
  const Subject subject = subject_of(job.file.stem().string(), *row, module);
  const Subject reference = subject_of("plain", {}, baseline_);
  Evaluation evaluation;
  switch (job.stage) {
    case How::check:
      evaluation = judge.check(subject, problem_.cases);
      break;
    case How::screen:
      evaluation = judge.screen(subject, reference, untimed(problem_), problem_.timed_cases());
      break;
    case How::compare:
      evaluation = judge.compare({.candidate = subject,
                                  .reference = reference,
                                  .check_cases = untimed(problem_),
                                  .timed_cases = problem_.timed_cases(),
                                  .rule = rule()});
      break;
    case How::promote:
      evaluation = judge.compare(promotion_of(problem_, subject, reference));
      break;
  }
  return {std::string(to_string(evaluation.verdict)), evaluation.reason};
}

Result<std::unique_ptr<ProblemLibrary>> Bench::build_mutant(const Mutant& mutant) {
  const fs::path original = options_.source / "tests/attacks/problem/problem.cpp";
  ASSIGN_OR_RETURN(std::string text, read_file(original));
  const std::size_t at = text.find(mutant.find);
  if (at == std::string::npos || text.find(mutant.find, at + 1) != std::string::npos)
    return Error{ErrorCode::bad_input, "make the mutant " + mutant.name,
                 "its text is not in problem.cpp exactly once", "correct attacks.toml"};
  text.replace(at, mutant.find.size(), mutant.replace);
  ASSIGN_OR_RETURN(const fs::path folder, make_temporary_folder(options_.cache, "mutant-"));
  RETURN_IF_ERROR(write_file(folder / "problem.cpp", text));
  auto module = compiler_->build_problem(folder / "problem.cpp");
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!module.ok()) return module.error();
  return ProblemLibrary::load(*module);
}

}  // namespace kbeam::attacks
