// The command table: names, options, examples and what exit code 1 means.
#include "apps/cli/commands.h"

#include "apps/cli/bench_tools.h"
#include "apps/cli/runs.h"

namespace kbeam::cli {
namespace {

using Kind = OptionSpec::Kind;

std::vector<OptionSpec> with(std::vector<OptionSpec> first, const std::vector<OptionSpec>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

std::vector<Command> make_commands() {
  return {
      {"run",
       "search for faster kernels for a problem, judge them, and write a report",
       "kbeam run batched_qr --budget 180s --goal 'speedup >= 6'",
       {{"PROBLEM", "PROBLEM", "a problem's name or folder", "", Kind::required},
        {"--budget", "TIME", "wall time, promotion and report included", "180s"},
        {"--evaluations", "N", "stop after this many screened candidates", ""},
        {"--goal", "GOAL", "stop when met: 'speedup >= 6', 'case n512 <= 2ms', joined by and / or",
         ""},
        {"--seed", "N", "repeats the choices of an earlier run", "random"},
        {"--target", "cpu", "where candidates run", "cpu"},
        {"--proposer", "builtin", "where ideas come from", "builtin"},
        {"--beam", "N", "families kept at one time", "4"},
        {"--grade", "NAME", "which of the problem's grades judges candidates", ""},
        dir_option()},
       "the campaign ended without a winner",
       run_command},
      {"resume",
       "go on with a run that was stopped or killed",
       "kbeam resume 20261129 --budget 60s",
       {run_argument(), {"--budget", "TIME", "wall time beyond the run's own", ""}, dir_option()},
       "the campaign ended without a winner",
       resume_command},
      {"status",
       "what a run has found so far",
       "kbeam status",
       {run_argument(), dir_option()},
       "",
       status_command},
      {"stop",
       "ask a running campaign to end after the attempt in hand",
       "kbeam stop 20261129",
       {run_argument(), dir_option()},
       "",
       stop_command},
      {"submit",
       "hand a candidate of your own to a run",
       "kbeam submit mine.cpp --idea 'keep the panel in registers'",
       {{"FILE", "FILE", "one .cpp that includes kbeam/candidate.h", "", Kind::required},
        {"--idea", "TEXT", "one sentence on what should be faster and why", "", Kind::required},
        {"--family", "NAME", "the line that it belongs to", "submitted"},
        {"--run", "RUN", "the run that takes it; the latest when left out", ""},
        dir_option()},
       "",
       submit_command},
      {"check", "judge whether a candidate is right, on every case",
       "kbeam check mine.cpp --problem batched_qr",
       with({{"FILE", "FILE", "one .cpp that includes kbeam/candidate.h", "", Kind::required},
             {"--case", "NAME", "only this case; may be given again", "", Kind::repeated},
             {"--seed", "N", "the inputs of an earlier check", "random"},
             {"--key", "N", "with --seed: the very input that failed", ""}},
            candidate_options()),
       "the candidate was rejected", check_command},
      {"bench", "check a candidate and time it against the problem's baseline",
       "kbeam bench mine.cpp --problem softmax",
       with({{"FILE", "FILE", "one .cpp that includes kbeam/candidate.h", "", Kind::required}},
            candidate_options()),
       "the candidate was rejected, or is not faster on every case", bench_command},
      {"compare",
       "time one candidate against another in interleaved pairs",
       "kbeam compare mine.cpp old.cpp --problem softmax",
       {{"A", "FILE", "the candidate", "", Kind::required},
        {"B", "FILE", "what it is compared with", "", Kind::required},
        {"--problem", "NAME|FOLDER", "the problem that both solve", "", Kind::required},
        {"--knob-a", "NAME=VALUE", "sets a knob of A", "", Kind::repeated},
        {"--knob-b", "NAME=VALUE", "sets a knob of B", "", Kind::repeated},
        {"--grade", "NAME", "which of the problem's grades judges them", ""}},
       "A was rejected, or is not faster on every case",
       compare_command},
      {"plan",
       "show what a CUDA candidate launches for a shape; needs no GPU",
       "kbeam plan problems/batched_qr/sketches/blocked_wy.cu --shape batch=4,m=64,n=64",
       {{"FILE", "FILE", "a .cu that includes kbeam/candidate.h, or a problem.cu", "",
         Kind::required},
        {"--problem", "NAME|FOLDER", "the problem that it solves; the one whose folder holds it",
         ""},
        {"--case", "NAME", "a case of the problem; may be given again", "", Kind::repeated},
        {"--shape", "AXES", "a shape of your own: batch=4,m=64,n=64", ""},
        {"--knob", "NAME=VALUE", "sets a knob; may be given again", "", Kind::repeated},
        {"--grade", "NAME", "for problem.cu: which grade its checks plan for", ""},
        {"--gpu", "NAME", "the description of the device to plan for", "h200"}},
       "a plan was refused, or a case is not supported",
       plan_command},
      {"report",
       "write report.html and attempts_log.md of a run again, from its archive",
       "kbeam report",
       {run_argument(), dir_option()},
       "",
       report_command},
      {"publish",
       "copy what ships of a run (winner, evidence, report) to campaigns/",
       "kbeam publish 20261129",
       {run_argument(),
        {"--to", "FOLDER", "where published campaigns live", "campaigns"},
        dir_option()},
       "the run has no winner",
       publish_command},
      {"problems",
       "list the problems that come with kbeam",
       "kbeam problems",
       {},
       "",
       problems_command},
      {"new-problem",
       "scaffold a problem that runs at once",
       "kbeam new-problem my_reduction",
       {{"NAME", "NAME", "letters, digits and underscores; the folder is made here", "",
         Kind::required}},
       "",
       new_problem_command},
      {"doctor",
       "what works here, what is missing, and what gain this machine can resolve",
       "kbeam doctor",
       {},
       "something that every campaign needs is missing",
       doctor_command},
  };
}

}  // namespace

const std::vector<Command>& all_commands() {
  static const std::vector<Command> commands = make_commands();
  return commands;
}

}  // namespace kbeam::cli
