#include "execute/task_progress.h"

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "execute/carried_file.h"
#include "execute/sealed_text.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

Seal progress_seal(const EvaluationTask& task) {
  return {"kbeam progress 1", task.seal_key};
}

Json to_json(const TaskProgress& progress) {
  return {{"so_far", kbeam::to_json(progress.so_far)}, {"checked", progress.checked}};
}

Result<TaskProgress> progress_from_json(const Json& json, const LoadedTask& task) {
  TaskProgress progress;
  try {
    ASSIGN_OR_RETURN(progress.so_far, task_result_from_json(json.at("so_far")));
    progress.checked = json.at("checked").get<std::vector<std::string>>();
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read the progress of task " + task.task.id, trouble.what(),
                 "remove progress.json: the task begins anew"};
  }
  if (progress.so_far.task_hash != task.task_hash)
    return Error{ErrorCode::corrupt, "read the progress of task " + task.task.id,
                 "it is of another task", "remove progress.json: the task begins anew"};
  if (const auto mistakes = find_sample_mistakes(task.task, progress.so_far); !mistakes.empty())
    return Error{ErrorCode::corrupt, "read the progress of task " + task.task.id, mistakes.front(),
                 "remove progress.json: the task begins anew"};
  return progress;
}

}  // namespace

Result<void> write_progress(const EvaluationTask& task, const SavedProgress& progress,
                            const std::filesystem::path& folder) {
  const Json body{{"now", to_json(progress.now)}, {"last_good", to_json(progress.last_good)}};
  return write_file(folder / kProgressFile, seal_text(progress_seal(task), json_text(body)));
}

Result<std::optional<SavedProgress>> read_progress(const LoadedTask& task,
                                                   const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kProgressFile;
  if (!is_carried(folder, kProgressFile)) return std::optional<SavedProgress>();
  ASSIGN_OR_RETURN(const std::string text, read_carried_file(folder, kProgressFile));
  ASSIGN_OR_RETURN(const std::string body,
                   open_sealed(progress_seal(task.task), text, file.string()));
  ASSIGN_OR_RETURN(const Json json, parse_json(body, file.string()));
  SavedProgress progress;
  ASSIGN_OR_RETURN(progress.now, progress_from_json(json.value("now", Json()), task));
  ASSIGN_OR_RETURN(progress.last_good, progress_from_json(json.value("last_good", Json()), task));
  return std::optional(std::move(progress));
}

}  // namespace kbeam
