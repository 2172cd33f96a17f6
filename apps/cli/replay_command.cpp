// kbeam replay: a recorded run, done again as far as it can be.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "apps/cli/terminal_progress.h"
#include "archive/archive.h"
#include "loop/replay.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

Result<Replay> replay(const Options& options) {
  ASSIGN_OR_RETURN(const std::filesystem::path folder, find_run(options));
  ASSIGN_OR_RETURN(const Home home, find_home());
  CampaignConfig config;
  {
    ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(folder / "archive.sqlite"));
    config = archive->config();
  }
  if (folder.filename() != config.run_id)
    return Error{ErrorCode::corrupt, "replay run " + folder.filename().string(),
                 "its archive is that of run " + config.run_id,
                 "put every archive back into the folder of its own name"};
  // Decisions are made again without any of the problem's code.
  const bool runs_code = !options.has("--only-recorded");
  ASSIGN_OR_RETURN(const Problem problem,
                   runs_code ? problem_of_run(config, options, home)
                             : open_problem(config.problem_folder, home, config.target));
  const CpuShare cpus = share_cpus();
  TerminalProgress progress(options.json() ? stderr : stdout);
  return replay_run({.problem = problem,
                     .home = home,
                     .run_folder = folder,
                     .cache = cache_folder(),
                     .candidate_cpus = cpus.candidates,
                     .judge_cpu = cpus.judge,
                     .only_recorded = options.has("--only-recorded")},
                    progress);
}

Json describe(const Replay& replay) {
  Json json{{"run_id", replay.config.run_id},
            {"events", replay.events},
            {"summaries", replay.recomputed.summaries},
            {"decisions", replay.recomputed.decisions},
            {"choices", replay.recomputed.choices},
            {"mistakes", replay.recomputed.mistakes},
            {"problem_changed", replay.problem_changed},
            {"winner", replay.winner ? Json(replay.winner->id) : Json()},
            {"other_machine", replay.other_machine},
            {"measured", nullptr}};
  if (replay.winner)
    json["recorded"] = {{"speedup", replay.recorded.speedup},
                        {"low", replay.recorded.low},
                        {"high", replay.recorded.high}};
  if (replay.promotion)
    json["measured"] = {{"verdict", std::string(to_string(replay.promotion->evaluation.verdict))},
                        {"confirmed", replay.not_confirmed_because.empty()},
                        {"because", replay.not_confirmed_because},
                        {"speedup", replay.promotion->geomean.speedup},
                        {"low", replay.promotion->geomean.low},
                        {"high", replay.promotion->geomean.high}};
  return json;
}

void print(const Replay& replay, bool only_recorded) {
  const Recomputed& again = replay.recomputed;
  fmt::print("\nrun {}: {} events and all content as they were written\n", replay.config.run_id,
             replay.events);
  fmt::print("{} summaries, {} decisions and {} choices of the search made again: {}\n",
             again.summaries, again.decisions, again.choices,
             again.mistakes.empty()
                 ? "all as recorded"
                 : fmt::format("{} do not follow from what is recorded", again.mistakes.size()));
  for (const std::string& mistake : again.mistakes) fmt::print("  {}\n", mistake);
  if (replay.problem_changed)
    fmt::print("the problem has changed since: the choices of the search were not made again\n");
  if (!replay.winner) return static_cast<void>(fmt::print("it has no winner to build again\n"));
  if (only_recorded || !again.mistakes.empty()) return;
  fmt::print("winner {}: rebuilt from the stored source, {}\n", replay.winner->id,
             replay.other_machine.empty()
                 ? "the same machine code"
                 : "machine code not compared (" + replay.other_machine + ")");
  if (!replay.promotion) return;
  const GeomeanSummary& now = replay.promotion->geomean;
  if (replay.promotion->evaluation.verdict == Verdict::accepted)
    fmt::print(
        "on new seeds: right, {:.2f}x [{:.2f}, {:.2f}]; recorded: {:.2f}x [{:.2f}, {:.2f}]\n",
        now.speedup, now.low, now.high, replay.recorded.speedup, replay.recorded.low,
        replay.recorded.high);
  fmt::print("{}\n", replay.not_confirmed_because.empty()
                         ? "confirmed"
                         : "not confirmed: " + replay.not_confirmed_because);
}

}  // namespace

int replay_command(const Options& options) {
  const Result<Replay> replayed = replay(options);
  if (!replayed.ok()) return report_error(replayed.error(), options);
  if (options.json())
    fmt::print("{}\n", json_text(describe(*replayed)));
  else
    print(*replayed, options.has("--only-recorded"));
  if (!replayed->recomputed.mistakes.empty()) return kNo;
  return replayed->not_confirmed_because.empty() ? kDone : kNo;
}

}  // namespace kbeam::cli
