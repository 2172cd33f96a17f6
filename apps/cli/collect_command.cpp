// kbeam collect: brings results of carried task folders home, into the archive of a run or into
// files of their own. Refuses what was changed, cut short, foreign, void or collected before, and
// says which.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/bench_tools.h"
#include "apps/cli/bundles.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "archive/archive.h"
#include "base/files.h"
#include "base/foreign_json.h"
#include "base/shown_text.h"
#include "execute/carried_file.h"
#include "loop/campaign_log.h"
#include "measure/statistics.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

// DIR itself, or the task folders in it.
Result<std::vector<fs::path>> task_folders(const fs::path& folder) {
  std::vector<fs::path> found;
  if (is_carried(folder, kTaskFile)) return std::vector{folder};
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(folder, trouble))
    if (is_carried(entry.path(), kTaskFile)) found.push_back(entry.path());
  if (found.empty())
    return Error{ErrorCode::not_found, "find task folders in " + folder.string(),
                 trouble ? trouble.message() : "there is none",
                 "name the folder that `kbeam bundle --out` wrote"};
  std::ranges::sort(found);
  return found;
}

struct Brought {
  LoadedTask task;
  TaskResult result;
};

Error refused(const std::string& attempted, std::string happened, std::string advice) {
  return {ErrorCode::corrupt, attempted, std::move(happened), std::move(advice)};
}

// A sealed result still has to be one that can stand.
Result<void> must_stand(const Brought& brought) {
  const EvaluationTask& task = brought.task.task;
  const TaskResult& result = brought.result;
  const std::string attempted = "collect the result of " + task.id;
  if (!result.device_trouble.empty())
    return refused(attempted, "it is void: the device failed its probe: " + result.device_trouble,
                   "run the same folder on another device: it goes on from what was good");
  if (result.evaluation.verdict == Verdict::engine_failed)
    return refused(attempted, "the evaluation failed on our side: " + result.evaluation.reason,
                   "run kbeam-worker on the folder again");
  if (result.evaluation.candidate_id != task.candidate.id ||
      result.evaluation.stage != task.stage || result.evaluation.grade != task.grade)
    return refused(attempted, "it is foreign: of another candidate, stage or grade",
                   "run the task again");
  return {};
}

Result<Brought> bring(const fs::path& folder) {
  Brought brought;
  ASSIGN_OR_RETURN(brought.task, read_task_folder(folder));
  if (!is_carried(folder, kResultFile))
    return Error{ErrorCode::not_found, "collect " + folder.string(),
                 is_carried(folder, kProgressFile) ? "it is not finished yet" : "it was not run",
                 "run kbeam-worker on it"};
  ASSIGN_OR_RETURN(brought.result, read_result(brought.task, folder));
  RETURN_IF_ERROR(must_stand(brought));
  // Summaries are derived here, whatever was sent.
  for (Measurement& measurement : brought.result.evaluation.measurements)
    measurement.summary = summarise_pairs(measurement.samples, brought.task.task.rule.confidence,
                                          measurement.noise_floor);
  return brought;
}

// Where results go. Each says whether it has this task's already.
class Shelf {
 public:
  virtual ~Shelf() = default;
  // Returns where the result lies now.
  virtual Result<std::string> put(Brought& brought) = 0;
};

Error repeated(const std::string& task_id, const std::string& where) {
  return refused("collect the result of " + task_id, "it is repeated: collected before, " + where,
                 "nothing is to be done");
}

class RunShelf final : public Shelf {
 public:
  static Result<std::unique_ptr<Shelf>> open(const fs::path& run) {
    ASSIGN_OR_RETURN(auto archive, Archive::open_for_append(run / "archive.sqlite"));
    std::unique_ptr<RunShelf> shelf(new RunShelf(run, std::move(archive)));
    ASSIGN_OR_RETURN(const std::vector<Event> events, shelf->log_.archive().events());
    for (const Event& event : events) {
      if (event.kind != "collected") continue;
      const Json body = parse_foreign_json(event.body);
      shelf->collected_[body.value("task_id", "")] = body.value("evaluation_id", "");
    }
    ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations,
                     shelf->log_.archive().evaluations());
    for (const Evaluation& evaluation : evaluations) shelf->evaluations_.insert(evaluation.id);
    return std::unique_ptr<Shelf>(std::move(shelf));
  }

  Result<std::string> put(Brought& brought) override {
    const std::string& task_id = brought.task.task.id;
    RETURN_IF_ERROR(must_be_bundled(run_, brought.task));
    Evaluation& evaluation = brought.result.evaluation;
    const auto known = collected_.find(task_id);
    if (known != collected_.end() && evaluations_.contains(known->second))
      return repeated(task_id, "as evaluation " + known->second);
    // The note comes first: a crash between the two leaves a note without its evaluation, which the
    // next collect completes, and never an evaluation twice.
    evaluation.id = known != collected_.end() ? known->second : log_.next_evaluation_id();
    if (known == collected_.end())
      RETURN_IF_ERROR(
          log_.archive().append_event("collected", {{"task_id", task_id},
                                                    {"task_hash", brought.task.task_hash},
                                                    {"evaluation_id", evaluation.id},
                                                    {"device", brought.result.device.name},
                                                    {"device_uuid", brought.result.device.uuid},
                                                    {"driver", brought.result.device.driver},
                                                    {"phase_s", brought.result.phase_s},
                                                    {"wall_s", brought.result.wall_s}}));
    RETURN_IF_ERROR(log_.archive().append_evaluation(evaluation));
    collected_[task_id] = evaluation.id;
    evaluations_.insert(evaluation.id);
    return "evaluation " + evaluation.id;
  }

 private:
  RunShelf(fs::path run, std::unique_ptr<Archive> archive)
      : run_(std::move(run)), log_(std::move(archive)) {}
  fs::path run_;
  CampaignLog log_;
  std::map<std::string, std::string> collected_;  // task id -> evaluation id
  std::set<std::string> evaluations_;
};

// One file a result, with its raw samples, for tasks that belong to no run.
class FolderShelf final : public Shelf {
 public:
  explicit FolderShelf(fs::path folder) : folder_(std::move(folder)) {}

  Result<std::string> put(Brought& brought) override {
    const std::string& task_id = brought.task.task.id;
    const fs::path file = folder_ / (task_id + ".json");
    if (fs::exists(file)) return repeated(task_id, "in " + file.string());
    brought.result.evaluation.id = task_id;
    EvaluationTask shown = brought.task.task;
    shown.seal_key.clear();
    shown.secret_seed = 0;
    std::error_code trouble;
    fs::create_directories(folder_, trouble);
    const Json body{{"task", to_json(shown)}, {"result", to_json(brought.result)}};
    RETURN_IF_ERROR(write_file(file, json_text(body) + "\n"));
    return file.string();
  }

 private:
  fs::path folder_;
};

Result<std::unique_ptr<Shelf>> open_shelf(const Options& options) {
  if (!options.has("--run"))
    return std::unique_ptr<Shelf>(std::make_unique<FolderShelf>(options.get("--to")));
  Options run_options = options;
  run_options.values["RUN"] = {options.get("--run")};
  ASSIGN_OR_RETURN(const fs::path run, find_run(run_options));
  return RunShelf::open(run);
}

void print_collected(const Brought& brought, const std::string& where) {
  const Evaluation& evaluation = brought.result.evaluation;
  fmt::print("{}: {} on {}: {}{}\n", brought.task.task.id, evaluation.candidate_id,
             shown_line(brought.result.device.name), to_string(evaluation.verdict),
             evaluation.reason.empty() ? "" : ": " + shown_line(evaluation.reason));
  for (const Measurement& measurement : evaluation.measurements)
    fmt::print("  {:<20} {:>10.1f} us against {:>10.1f} us  {:.3f}x [{:.3f}, {:.3f}]  {}\n",
               measurement.case_name, measurement.summary.candidate_ns / 1e3,
               measurement.summary.reference_ns / 1e3, measurement.summary.speedup,
               measurement.summary.low, measurement.summary.high,
               to_string(measurement.summary.comparison));
  for (const auto& [name, time_ns] : brought.result.case_ns)
    fmt::print("  {:<20} {:>10.1f} us\n", name, time_ns / 1e3);
  fmt::print("  kept as {}\n", where);
}

// One folder; what happened as JSON.
Json collect_one(const fs::path& folder, Shelf& shelf, const Options& options) {
  const auto done = [&]() -> Result<Json> {
    // DIR is the caller's word; what lies in it is not.
    if (folder != fs::path(options.get("DIR")) && fs::is_symlink(fs::symlink_status(folder)))
      return Error{ErrorCode::corrupt, "collect " + folder.string(), "it is a symbolic link",
                   "only folders that lie in DIR itself are taken: name it directly"};
    ASSIGN_OR_RETURN(Brought brought, bring(folder));
    ASSIGN_OR_RETURN(const std::string where, shelf.put(brought));
    if (!options.json()) print_collected(brought, where);
    return Json{{"folder", folder.string()},
                {"task_id", brought.task.task.id},
                {"kept", where},
                {"evaluation", to_json(brought.result.evaluation)}};
  }();
  if (done.ok()) return *done;
  if (!options.json()) fmt::print("refused {}: {}\n", folder.string(), done.error().text());
  return Json{{"folder", folder.string()},
              {"refused", done.error().happened},
              {"attempted", done.error().attempted},
              {"advice", done.error().advice}};
}

}  // namespace

int collect_command(const Options& options) {
  const auto collected = [&]() -> Result<Json> {
    ASSIGN_OR_RETURN(const std::vector<fs::path> folders, task_folders(options.get("DIR")));
    ASSIGN_OR_RETURN(const auto shelf, open_shelf(options));
    Json list = Json::array();
    for (const fs::path& folder : folders) list.push_back(collect_one(folder, *shelf, options));
    return list;
  }();
  if (!collected.ok()) return report_error(collected.error(), options);
  if (options.json()) fmt::print("{}\n", json_text(*collected));
  const bool all =
      std::ranges::none_of(*collected, [](const Json& one) { return one.contains("refused"); });
  return all ? kDone : kNo;
}

}  // namespace kbeam::cli
