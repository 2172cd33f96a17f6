// kbeam run, kbeam resume: a campaign in the foreground.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/proposers.h"
#include "apps/cli/runs.h"
#include "apps/cli/steering.h"
#include "apps/cli/terminal_progress.h"
#include "archive/archive.h"
#include "base/entropy.h"
#include "base/own_lock.h"
#include "loop/budget_watch.h"
#include "loop/goal.h"
#include "loop/pace.h"
#include "loop/research_loop.h"
#include "loop/run_usage.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

std::atomic<bool> interrupted{false};

// The first Ctrl-C asks for a clean end; a second one ends at once, as people expect.
extern "C" void on_interrupt(int) {
  if (interrupted.exchange(true)) std::_Exit(kInterrupted);
}

std::string figure(const Json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "unknown";
}

void print_cases(const Json& cases) {
  fmt::print("  {:<12} {:>12} {:>12} {:>9}  {:<18} {}\n", "case", "baseline us", "winner us",
             "speedup", "99 % interval", "verdict");
  for (const Json& row : cases)
    fmt::print("  {:<12} {:>12} {:>12} {:>8}x  [{}, {}]{:>6} {}\n", row["name"].get<std::string>(),
               fmt::format("{:.1f}", row["baseline_ns"].get<double>() / 1e3),
               fmt::format("{:.1f}", row["candidate_ns"].get<double>() / 1e3),
               figure(row["speedup"], "{:.2f}"), figure(row["low"], "{:.2f}"),
               figure(row["high"], "{:.2f}"), "", row["comparison"].get<std::string>());
}

void print_summary(const Json& summary) {
  fmt::print(
      "\nrun {} on {}: {} evaluations, {} a minute, {} while screening, engine overhead {} %, "
      "stopped: {}\n",
      summary["run_id"].get<std::string>(), summary["problem"].get<std::string>(),
      summary["evaluations"].get<int>(), figure(summary["evaluations_per_minute"], "{:.1f}"),
      figure(summary["screenings_per_minute"], "{:.1f}"),
      fmt::format("{:.1f}", 100 * summary["engine_overhead_fraction"].get<double>()),
      summary["stop_reason"].get<std::string>());
  if (summary["winner"].is_null()) {
    fmt::print("no winner: {}\n", summary["no_winner_because"].get<std::string>());
  } else {
    const Json& winner = summary["winner"];
    fmt::print("winner {}: {}x {} in geometric mean, 1 thread, grade {}, assurance {}",
               winner["candidate_id"].get<std::string>(),
               figure(winner["speedup_geomean"], "{:.2f}"),
               summary["baseline"]["name"].get<std::string>(), winner["grade"].get<std::string>(),
               winner["assurance"].get<std::string>());
    if (const Json& worst = winner["worst_error"]; !worst.is_null())
      fmt::print(", worst {} {} of {} {}", worst["name"].get<std::string>(),
                 figure(worst["value"], "{:.3g}"), figure(worst["limit"], "{:.3g}"),
                 worst["unit"].get<std::string>());
    fmt::print("\n");
    print_cases(winner["cases"]);
    if (summary.contains("all_cores")) {
      fmt::print("all cores ({} threads on both sides): {}x in geometric mean\n",
                 summary["all_cores"]["threads"].get<int>(),
                 figure(summary["all_cores"]["speedup_geomean"], "{:.2f}"));
      print_cases(summary["all_cores"]["cases"]);
    }
  }
  fmt::print("used: {}\n", budget_totals_text(summary["budgets"]));
  fmt::print("report: {}\n", summary["report_html"].get<std::string>());
}

int run_in_foreground(const CampaignSetup& setup, const Options& options) {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  Result<CampaignOutcome> outcome = [&] {
    TerminalProgress progress(options.json() ? stderr : stdout);
    return run_campaign(setup, progress, interrupted);
  }();
  const std::string resume = "kbeam resume " + setup.config.run_id +
                             (options.has("--dir") ? " --dir " + options.get("--dir") : "");
  if (!outcome.ok()) {
    const int code = report_error(outcome.error(), options);
    if (std::filesystem::exists(setup.run_folder / "archive.sqlite"))
      fmt::print(stderr, "what was done is kept; go on with: {}\n", resume);
    return code;
  }
  if (options.json())
    fmt::print("{}\n", json_text(outcome->summary));
  else
    print_summary(outcome->summary);
  if (outcome->stop_reason == StopReason::asked_to_stop) {
    fmt::print(stderr, "stopped; go on with: {}\n", resume);
    return interrupted ? kInterrupted : kDone;
  }
  return outcome->summary["winner"].is_null() ? kNo : kDone;
}

// Told now rather than after the compiler and the problem are ready.
Result<void> check_goal(const std::string& goal, const Problem& problem) {
  const Result<Goal> parsed = Goal::parse(goal, problem);
  return parsed.ok() ? Result<void>() : parsed.error();
}

Result<CampaignSetup> new_setup(const Options& options) {
  CampaignSetup setup;
  ASSIGN_OR_RETURN(setup.home, find_home());
  CampaignConfig& config = setup.config;
  config.target = options.get("--target");
  ASSIGN_OR_RETURN(setup.problem, open_problem(options.get("PROBLEM"), setup.home, config.target));
  ASSIGN_OR_RETURN(setup.grade, choose_grade(setup.problem, options.get("--grade")));
  config.run_id = make_run_id();
  config.problem_name = setup.problem.name;
  config.problem_folder = setup.problem.folder.string();
  config.problem_hash = setup.problem.content_hash;
  config.grade = setup.grade;
  config.goal = options.get("--goal");
  RETURN_IF_ERROR(check_goal(config.goal, setup.problem));
  ASSIGN_OR_RETURN(config.budget.wall_s, parse_duration(options.get("--budget"), "--budget"));
  if (options.has("--evaluations")) {
    ASSIGN_OR_RETURN(config.budget.evaluations,
                     parse_count(options.get("--evaluations"), "--evaluations"));
  }
  if (options.has("--device-time")) {
    ASSIGN_OR_RETURN(config.budget.device_s,
                     parse_duration(options.get("--device-time"), "--device-time"));
  }
  config.seed = random_bits() >> 16;  // short enough to type again
  if (options.has("--seed")) {
    ASSIGN_OR_RETURN(config.seed, parse_number(options.get("--seed"), "--seed"));
  }
  constexpr int kMostBeam = 1000;
  ASSIGN_OR_RETURN(config.beam, parse_count(options.get("--beam"), "--beam", kMostBeam));
  config.search = options.get("--search");
  if (config.search != "beam" && config.search != "random")
    return Error{ErrorCode::bad_input, "choose a search", "'" + config.search + "' is none",
                 "say --search beam or --search random"};
  const CpuShare cpus = share_cpus();
  config.judge_cpu = cpus.judge;
  config.candidate_cpus = cpus.candidates;
  setup.run_folder = runs_folder(options) / config.run_id;
  setup.cache = cache_folder();
  RETURN_IF_ERROR(choose_proposers(options, setup));
  return setup;
}

std::string estimate_of_pace(const CampaignSetup& setup) {
  const auto earlier = find_earlier_run(setup.run_folder.parent_path(), setup.config);
  if (!earlier)
    return "estimate: no run of " + setup.config.problem_name +
           " ended here yet that tells the pace: it is estimated once the baseline is measured";
  return "estimate, by run " + earlier->run_id + ": " +
         describe_room(earlier->pace, {}, setup.config.budget);
}

// The folder of all runs, where this one can begin: told now rather than after the first build.
Result<void> make_ready(const std::filesystem::path& runs) {
  std::error_code trouble;
  std::filesystem::create_directories(runs, trouble);
  if (!trouble && ::access(runs.c_str(), W_OK | X_OK) != 0)
    trouble = std::error_code(errno, std::generic_category());
  if (trouble)
    return Error{ErrorCode::io, "begin a run in " + runs.string(), trouble.message(),
                 "make it writable, or choose another place with --dir"};
  for (const auto& entry : std::filesystem::directory_iterator(runs, trouble))
    remove_stillborn_run(entry.path());
  return {};
}

}  // namespace

int run_command(const Options& options) {
  const Result<CampaignSetup> setup = new_setup(options);
  if (!setup.ok()) return report_error(setup.error(), options);
  if (const Result<void> ready = make_ready(setup->run_folder.parent_path()); !ready.ok())
    return report_error(ready.error(), options);
  std::FILE* const stream = options.json() ? stderr : stdout;
  fmt::print(stream, "{}\n", estimate_of_pace(*setup));
  if (const std::string estimate = estimate_text(*setup); !estimate.empty())
    fmt::print(stream, "{}\n", estimate);
  return run_in_foreground(*setup, options);
}

int resume_command(const Options& options) {
  if (const Result<std::filesystem::path> run = find_run(options); run.ok() && is_live(*run))
    return resume_live_run(*run, options);
  if (options.has("--only-paused"))
    return report_error({ErrorCode::bad_input, "resume a paused run", "no such run is live",
                         "begin it again without --only-paused"},
                        options);
  const auto setup = [&]() -> Result<CampaignSetup> {
    CampaignSetup resumed;
    ASSIGN_OR_RETURN(resumed.run_folder, find_run(options));
    ASSIGN_OR_RETURN(const auto archive,
                     Archive::open_read_only(resumed.run_folder / "archive.sqlite"));
    resumed.config = archive->config();
    ASSIGN_OR_RETURN(const RunUsage usage, run_usage_of(*archive));
    resumed.config.budget = usage.limits;  // an earlier resume may have raised them
    resumed.grade = resumed.config.grade;
    ASSIGN_OR_RETURN(resumed.home, find_home());
    ASSIGN_OR_RETURN(resumed.problem, problem_of_run(resumed.config, options, resumed.home));
    if (resumed.problem.content_hash != resumed.config.problem_hash)
      return Error{ErrorCode::bad_input, "resume " + resumed.config.run_id,
                   "problem " + resumed.problem.name + " has changed since the run began",
                   "results under two definitions cannot be mixed: start a new run"};
    for (const char* folder : {"", "inbox"}) remove_abandoned_parts(resumed.run_folder / folder);
    if (options.has("--budget")) {
      ASSIGN_OR_RETURN(const double more_s, parse_duration(options.get("--budget"), "--budget"));
      resumed.config.budget.wall_s += more_s;
    }
    if (options.has("--device-time")) {
      ASSIGN_OR_RETURN(const double more_s,
                       parse_duration(options.get("--device-time"), "--device-time"));
      if (double& most_s = resumed.config.budget.device_s; most_s > 0) most_s += more_s;
    }
    const CpuShare cpus = share_cpus();
    resumed.config.judge_cpu = cpus.judge;
    resumed.config.candidate_cpus = cpus.candidates;
    resumed.cache = cache_folder();
    RETURN_IF_ERROR(restore_proposers(*archive, options, resumed));
    return resumed;
  }();
  if (!setup.ok()) return report_error(setup.error(), options);
  return run_in_foreground(*setup, options);
}

}  // namespace kbeam::cli
