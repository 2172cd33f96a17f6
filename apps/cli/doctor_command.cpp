// kbeam doctor: one line each on what works and what is missing, for the CPU and for CUDA, then an
// A/A control of about five seconds that says what gain this machine can resolve.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/doctor.h"
#include "apps/cli/terminal_progress.h"
#include "archive/archive.h"
#include "base/entropy.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "loop/baseline.h"
#include "loop/research_loop.h"
#include "measure/statistics.h"
#include "model/json_forms.h"
#include "propose/agent_sandbox.h"
#include "target/cpu/runner.h"

namespace kbeam::cli {
namespace {

std::string_view word(Finding::State state) {
  switch (state) {
    case Finding::State::works:
      return "ok";
    case Finding::State::weaker:
      return "weaker";
    case Finding::State::absent:
      return "absent";
    case Finding::State::missing:
      return "missing";
  }
  return "";
}

Finding examine_sandbox() {
  const SandboxLevel level = best_sandbox();
  const std::string text = "candidates run behind " + std::string(to_string(level));
  if (level == SandboxLevel::namespaces) return {"sandbox", Finding::State::works, text};
  if (level == SandboxLevel::none)
    return {"sandbox", Finding::State::missing, "no isolation here: nothing can be promoted"};
  return {"sandbox", Finding::State::weaker, text + "; every result says so"};
}

Finding examine_cpus() {
  const CpuShare share = share_cpus();
  if (share.candidates.size() > 1)
    return {"cpus", Finding::State::works,
            fmt::format("candidates on CPU {}, the judge on CPU {}", share.candidates.front(),
                        share.judge)};
  return {"cpus", Finding::State::weaker, "one CPU for judge and candidates: times are noisier"};
}

Finding examine_agent_rooms() {
  const std::string why_not = why_no_agent_sandbox();
  if (why_not.empty())
    return {"agent rooms", Finding::State::works,
            "agents run in rooms of their own: user, mount, process and network namespaces"};
  return {"agent rooms", Finding::State::absent,
          why_not +
              ": --proposer agent: is refused; allow user namespaces, or start an agent by "
              "hand in a folder of `kbeam setup`"};
}

Finding examine_archive() {
  const Result<PrivateFolder> folder = PrivateFolder::make("kbeam-doctor-");
  if (!folder.ok()) return {"archive", Finding::State::missing, folder.error().text()};
  const auto archive = Archive::create(folder->path() / "archive.sqlite", {}, {});
  Finding finding{"archive", Finding::State::works, "SQLite with write-ahead log"};
  if (!archive.ok()) finding = {"archive", Finding::State::missing, archive.error().text()};
  return finding;
}

// What the A/A control of a problem's baseline can tell apart: its noise floor, and the half-width
// of an interval at the last look of a confirmation and of a promotion (it shrinks with the square
// root of the pairs).
Result<Finding> examine_noise(BenchTools& tools) {
  TerminalProgress progress(stderr);
  const MachineBench bench{tools.problem, tools.target.library->code(), *tools.target.judge,
                           *tools.builds, progress};
  ASSIGN_OR_RETURN(const BaselineFacts baseline, measure_baseline(bench));
  CompareRequest request{
      .candidate = tools.builds->subject_of(baseline.portfolio, baseline.portfolio.id),
      .reference = tools.builds->subject_of(baseline.portfolio, baseline.portfolio.id)};
  request.timed_cases = tools.problem.timed_cases();
  const MeasurementRules rules = cpu_rules();
  request.rule = rules.control;
  request.rule.looks.resize(1);
  const Evaluation control = tools.target.judge->compare(request);
  if (control.verdict != Verdict::accepted)
    return Finding{"noise", Finding::State::missing, "the A/A control failed: " + control.reason};
  double worst = 0;
  double floor = 0;
  for (const Measurement& measurement : control.measurements) {
    worst = std::max(worst, std::log(measurement.summary.high / measurement.summary.low) / 2);
    floor = std::max(floor, noise_floor(aa_noise(measurement.samples, request.rule.confidence), 0,
                                        measurement.summary.candidate_ns));
  }
  const double pairs = request.rule.looks.back().pairs;
  const auto resolved = [&](const StoppingRule& rule) {
    return 100 * (floor + worst * std::sqrt(pairs / rule.looks.back().pairs));
  };
  return Finding{
      "noise", worst < 0.05 ? Finding::State::works : Finding::State::weaker,
      fmt::format("identical kernels may differ by {:.2f} % (A/A, {} pairs); this machine resolves "
                  "gains of about {:.1f} % in a promotion, {:.1f} % in a confirmation",
                  100 * floor, pairs, resolved(rules.promote), resolved(rules.confirm))};
}

std::vector<Finding> examine() {
  std::vector<Finding> findings{examine_cpus(), examine_sandbox(), examine_agent_rooms(),
                                examine_archive()};
  const Result<std::unique_ptr<BenchTools>> tools = open_bench_tools({.problem = "template"});
  if (!tools.ok()) {
    findings.push_back({"compiler", Finding::State::missing, tools.error().text()});
    return findings;
  }
  findings.push_back({"compiler", Finding::State::works, (*tools)->target.compiler->version()});
  for (const std::string& weakness : (*tools)->target.compiler->weaknesses())
    findings.push_back({"compiler sandbox", Finding::State::weaker, weakness});
  const Result<ProcessOutcome> openblas = run_process(
      {.command = {"/bin/sh", "-c", "echo 'int main(){}' | g++ -x c++ - -o /dev/null -lopenblas"},
       .folder = "/tmp",
       .environment = {"PATH=/usr/bin:/bin"},
       .timeout_s = 20});
  findings.push_back(
      openblas.ok() && openblas->exit_code == 0
          ? Finding{"openblas", Finding::State::works, "the LAPACK baseline can be built"}
          : Finding{"openblas", Finding::State::missing,
                    "install libopenblas-dev for the baseline of batched_qr"});
  for (Finding& finding : examine_cuda((*tools)->home)) findings.push_back(std::move(finding));
  const Result<Finding> noise = examine_noise(**tools);
  findings.push_back(noise.ok() ? *noise
                                : Finding{"noise", Finding::State::missing, noise.error().text()});
  return findings;
}

}  // namespace

int doctor_command(const Options& options) {
  const std::vector<Finding> findings = examine();
  bool complete = true;
  Json list = Json::array();
  for (const Finding& finding : findings) {
    complete = complete && finding.state != Finding::State::missing;
    if (options.json())
      list.push_back({{"what", finding.what},
                      {"state", std::string(word(finding.state))},
                      {"text", finding.text}});
    else
      fmt::print("{:<8} {:<18} {}\n", word(finding.state), finding.what, finding.text);
  }
  if (options.json()) fmt::print("{}\n", json_text(list));
  return complete ? kDone : kNo;
}

}  // namespace kbeam::cli
