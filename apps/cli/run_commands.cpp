// kbeam status, stop, submit, report, publish: what can be said to a run, and what it says.
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "apps/cli/steering.h"
#include "archive/archive.h"
#include "archive/writer_lock.h"
#include "base/hash.h"
#include "build/source_scan.h"
#include "execute/device_state.h"
#include "loop/budget_watch.h"
#include "loop/contributions.h"
#include "loop/inbox.h"
#include "loop/research_loop.h"
#include "loop/run_usage.h"
#include "loop/summary.h"
#include "model/json_forms.h"
#include "report/publish.h"
#include "report/report.h"

namespace kbeam::cli {
namespace {

struct OpenRun {
  std::filesystem::path folder;
  std::unique_ptr<Archive> archive;
};

Result<OpenRun> open_run(const Options& options) {
  OpenRun run;
  ASSIGN_OR_RETURN(run.folder, find_run(options));
  ASSIGN_OR_RETURN(run.archive, Archive::open_read_only(run.folder / "archive.sqlite"));
  return run;
}

Result<ReportInput> gather(const OpenRun& run) {
  ASSIGN_OR_RETURN(const Home home, find_home());
  ASSIGN_OR_RETURN(const Problem problem, open_problem(run.archive->config().problem_folder, home,
                                                       run.archive->config().target));
  return gather_report(*run.archive, problem);
}

// Whoever writes to the archive has its lock, however the run ended before: that tells a running
// campaign from a killed one.
Result<void> add_state(const OpenRun& run, Json& status, const std::optional<Json>& ended) {
  const auto holder = WriterLock::find_holder(run.folder / "archive.sqlite");
  status["state"] = holder ? Json("running") : ended ? ended->at("stop_reason") : Json("killed");
  status["writer"] = holder ? Json(*holder) : Json();
  ASSIGN_OR_RETURN(const std::optional<Json> jump, run.archive->last_event("clock_went_back"));
  status["clock_went_back_s"] = Json();
  if (jump)
    status["clock_went_back_s"] =
        (jump->at("from_unix_ms").get<double>() - jump->at("to_unix_ms").get<double>()) / 1000;
  return {};
}

std::string describe_state(const Json& status) {
  const std::string state = status["state"].get<std::string>();
  if (state == "running") return "running (" + status["writer"].get<std::string>() + ")";
  if (state == "paused") return "paused: `kbeam resume` goes on";
  if (state == "forked")
    return "forked: `kbeam resume " + status["run_id"].get<std::string>() + "` goes on";
  if (state == "killed")
    return "killed: `kbeam resume " + status["run_id"].get<std::string>() + "` goes on";
  return state;
}

// The running total of every budget.
void add_budgets(const RunUsage& usage, Json& status) {
  const Json& models = status["contributions"]["total"];
  const BudgetUse use{.wall_s = usage.used.used_s,
                      .evaluations = usage.used.screened,
                      .device_s = usage.used.device_s,
                      .tokens = models.value("tokens_in", std::int64_t{0}) +
                                models.value("tokens_out", std::int64_t{0}),
                      .money = models.value("money", 0.0)};
  const Budget& limits = usage.limits;
  status["device_s"] = use.device_s;
  status["budget_device_s"] = limits.device_s;
  status["budget_evaluations"] = limits.evaluations;
  status["budget_tokens"] = limits.tokens;
  status["budget_money"] = limits.money;
  status["budgets"] = budget_totals(use, limits);
}

// The state of a run from a few events: it must answer at once however long the run is.
Result<Json> read_status(const OpenRun& run) {
  const CampaignConfig config = run.archive->config();
  ASSIGN_OR_RETURN(const RunUsage usage, run_usage_of(*run.archive));
  const Used& used = usage.used;
  Json status{{"run_id", config.run_id},       {"problem", config.problem_name},
              {"folder", run.folder.string()}, {"budget_s", usage.limits.wall_s},
              {"goal", config.goal},           {"evaluations", used.screened},
              {"used_s", used.used_s}};
  const bool began = used.used_s > 0;
  status["engine_overhead_fraction"] = began ? Json(1 - used.busy_s / used.used_s) : Json();
  status["evaluations_per_minute"] = began ? Json(60 * used.screened / used.used_s) : Json();
  ASSIGN_OR_RETURN(const std::optional<Json> ended, run.archive->last_event("stop"));
  RETURN_IF_ERROR(add_state(run, status, ended));
  ASSIGN_OR_RETURN(const std::optional<Json> families, run.archive->last_event("families"));
  status["families"] = families ? families->at("families") : Json::array();
  std::map<std::string, Json> champions;
  ASSIGN_OR_RETURN(const std::vector<Event> events, run.archive->events_of("champion"));
  for (const Event& event : events) {
    ASSIGN_OR_RETURN(const Json champion, parse_json(event.body, "a champion"));
    champions[champion.at("case_name").get<std::string>()] = champion;
  }
  status["champions"] = Json::array();
  for (auto& [name, champion] : champions) status["champions"].push_back(std::move(champion));
  // Evaluations that another machine made: no budget of this run paid for them.
  ASSIGN_OR_RETURN(const std::vector<Event> collected, run.archive->events_of("collected"));
  status["collected"] = collected.size();
  ASSIGN_OR_RETURN(status["contributions"], who_did_what(*run.archive));
  add_budgets(usage, status);
  status["winner"] = ended ? ended->at("winner") : Json();
  status["quarantined_devices"] = Json::array();
  if (config.target == "cuda")
    for (const Quarantine& found : DeviceStates().all())
      status["quarantined_devices"].push_back(found.text());
  RETURN_IF_ERROR(add_steering(*run.archive, run.folder, status));
  return status;
}

// Where models were asked: what they took, and who brought what.
void print_contributions(const Json& status) {
  const Json& all = status["contributions"];
  const Json& total = all["total"];
  if (!total.contains("requests")) return;
  fmt::print("  models: {} requests, {} tokens in and {} out, {:.4f} in money\n",
             total["requests"].get<int>(), total["tokens_in"].get<std::int64_t>(),
             total["tokens_out"].get<std::int64_t>(), total["money"].get<double>());
  for (const char* group : {"models", "categories"})
    for (const Json& one : all[group]) {
      fmt::print(
          "  {:<32} {:>3} ideas {:>3} sources  {:>3} of {:>3} right  {} champions, gain {:.2f}x",
          one["name"].get<std::string>(), one["ideas"].get<int>(), one["sources"].get<int>(),
          one["accepted"].get<int>(), one["judged"].get<int>(), one["champions"].get<int>(),
          one["gain"].get<double>());
      if (one.contains("tokens_in"))
        fmt::print(", {} tokens, {:.4f}",
                   one["tokens_in"].get<std::int64_t>() + one["tokens_out"].get<std::int64_t>(),
                   one["money"].get<double>());
      fmt::print("\n");
    }
}

void print_status(const Json& status) {
  fmt::print("run {} on {}: {}, {} evaluations, {:.0f} of {:.0f} s used\n",
             status["run_id"].get<std::string>(), status["problem"].get<std::string>(),
             describe_state(status), status["evaluations"].get<int>(),
             status["used_s"].get<double>(), status["budget_s"].get<double>());
  fmt::print("  budgets: {}\n", budget_totals_text(status["budgets"]));
  if (!status["engine_overhead_fraction"].is_null())
    fmt::print("  {:.1f} evaluations a minute, engine overhead {:.1f} % of the wall time\n",
               status["evaluations_per_minute"].get<double>(),
               100 * status["engine_overhead_fraction"].get<double>());
  if (const auto collected = status["collected"].get<int>(); collected > 0)
    fmt::print("  {} more evaluations, made elsewhere, were collected\n", collected);
  if (!status["clock_went_back_s"].is_null())
    fmt::print(
        "  the clock of this machine went back by {:.0f} s: events are in the order of their "
        "numbers, and times of day are not to be compared; nothing else depends on them\n",
        status["clock_went_back_s"].get<double>());
  for (const Json& champion : status["champions"])
    fmt::print("  {:<12} {:.2f}x [{:.2f}, {:.2f}]  {} ({})\n",
               champion["case_name"].get<std::string>(), champion["speedup"].get<double>(),
               champion["low"].get<double>(), champion["high"].get<double>(),
               champion["candidate_id"].get<std::string>(), champion["family"].get<std::string>());
  if (status["champions"].empty()) fmt::print("  no champion yet\n");
  for (const Json& family : status["families"])
    fmt::print("  family {:<24} {:<11} {:>4} tried  best {:.2f}x\n",
               family["name"].get<std::string>(),
               family["retired"].get<bool>() ? "retired" : family["role"].get<std::string>(),
               family["evaluations"].get<int>(), family["best_speedup"].get<double>());
  print_contributions(status);
  print_steering(status);
  for (const Json& device : status["quarantined_devices"])
    fmt::print("  {}\n", device.get<std::string>());
  if (!status["winner"].is_null())
    fmt::print("  winner {}: {:.2f}x in geometric mean\n",
               status["winner"]["candidate_id"].get<std::string>(),
               status["winner"]["speedup_geomean"].get<double>());
}

int say(const Options& options, const Json& json, const std::string& text) {
  fmt::print("{}\n", options.json() ? json_text(json) : text);
  return kDone;
}

// The campaign looks again when it takes the submission; whoever submits hears of it now.
Result<void> check_submission(const std::filesystem::path& run, const std::string& file,
                              const Submission& submission) {
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(run / "archive.sqlite"));
  std::string why = mistakes_in(submission, archive->config().target);
  ASSIGN_OR_RETURN(const bool dropped, is_dropped(*archive, run, submission.idea.family));
  if (dropped)
    why += fmt::format("{0}family {1} was dropped; `kbeam protect {1}` brings it back",
                       why.empty() ? "" : "; ", submission.idea.family);
  if (why.empty()) return {};
  return Error{ErrorCode::bad_input, "submit " + file + " to run " + run.filename().string(), why,
               "correct it and submit it again; docs/candidate.md says what a candidate is"};
}

}  // namespace

int status_command(const Options& options) {
  const auto status = [&]() -> Result<Json> {
    ASSIGN_OR_RETURN(const OpenRun run, open_run(options));
    return read_status(run);
  }();
  if (!status.ok()) return report_error(status.error(), options);
  if (options.json())
    fmt::print("{}\n", json_text(*status));
  else
    print_status(*status);
  return kDone;
}

int stop_command(const Options& options) {
  const Result<std::filesystem::path> run = find_run(options);
  if (!run.ok()) return report_error(run.error(), options);
  const std::string id = run->filename().string();
  if (!is_live(*run))
    return report_error({ErrorCode::bad_input, "stop run " + id, "nobody runs it now",
                         "there is nothing to stop; see `kbeam status " + id +
                             "`, and go on with "
                             "it by `kbeam resume " +
                             id + "`"},
                        options);
  if (const Result<void> dropped = Inbox(*run).drop_stop(); !dropped.ok())
    return report_error(dropped.error(), options);
  return say(
      options, {{"run_id", id}, {"asked_to_stop", true}},
      "asked " + id + " to stop after the attempt in hand; go on later with: kbeam resume " + id);
}

int submit_command(const Options& options) {
  const auto submitted = [&]() -> Result<Json> {
    ASSIGN_OR_RETURN(const std::string source, read_file(options.get("FILE")));
    const SourceKnobs scanned = scan_knobs(source);
    if (!scanned.mistakes.empty())
      return Error{ErrorCode::bad_input, "read the knobs of " + options.get("FILE"),
                   scanned.mistakes.front(), "mend the KBEAM_KNOB lines"};
    Options run_options = options;
    run_options.values["RUN"] = {options.get("--run")};
    ASSIGN_OR_RETURN(const std::filesystem::path run, find_run(run_options));
    Submission submission;
    submission.source = source;
    submission.source_name = std::filesystem::path(options.get("FILE")).filename().string();
    submission.idea.family = options.get("--family");
    submission.idea.text = options.get("--idea");
    submission.idea.category = "by hand";
    submission.idea.source = "manual";
    submission.idea.id =
        sha256_hex(submission.idea.family + "\n" + submission.idea.text + "\n" + source)
            .substr(0, 12);
    RETURN_IF_ERROR(check_submission(run, options.get("FILE"), submission));
    RETURN_IF_ERROR(Inbox(run).drop_submission(submission));
    return Json{{"run_id", run.filename().string()},
                {"idea_id", submission.idea.id},
                {"family", submission.idea.family},
                {"knobs", scanned.knobs.size()},
                {"live", is_live(run)}};
  }();
  if (!submitted.ok()) return report_error(submitted.error(), options);
  const std::string id = (*submitted)["run_id"].get<std::string>();
  return say(
      options, *submitted,
      fmt::format("left for run {}: {}", id,
                  (*submitted)["live"].get<bool>()
                      ? "it is judged in the next round; see `kbeam status`"
                      : "nobody runs it now: it is judged once `kbeam resume " + id + "` goes on"));
}

int report_command(const Options& options) {
  const auto written = [&]() -> Result<std::filesystem::path> {
    ASSIGN_OR_RETURN(const OpenRun run, open_run(options));
    ASSIGN_OR_RETURN(const ReportInput input, gather(run));
    RETURN_IF_ERROR(write_reports(input, run.folder));
    return run.folder;
  }();
  if (!written.ok()) return report_error(written.error(), options);
  return say(options,
             {{"report_html", (*written / "report.html").string()},
              {"attempts_log", (*written / "attempts_log.md").string()}},
             "wrote " + (*written / "report.html").string() + "\nwrote " +
                 (*written / "attempts_log.md").string());
}

int publish_command(const Options& options) {
  const auto input = [&]() -> Result<ReportInput> {
    ASSIGN_OR_RETURN(const OpenRun run, open_run(options));
    return gather(run);
  }();
  if (!input.ok()) return report_error(input.error(), options);
  if (input->summary.is_null() || input->summary["winner"].is_null()) {
    if (options.json()) fmt::print("{}\n", json_text(Json{{"published", nullptr}}));
    fmt::print(stderr, "kbeam: run {} has no winner to publish\n", input->config.run_id);
    return kNo;
  }
  const std::filesystem::path target = options.get("--to");
  if (const Result<void> published = publish_run(*input, target); !published.ok())
    return report_error(published.error(), options);
  const std::string folder = (target / input->config.run_id).string();
  return say(options, {{"published", folder}}, "published to " + folder);
}

}  // namespace kbeam::cli
