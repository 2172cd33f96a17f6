#include "apps/worker/task_run.h"

#include <system_error>

#include "execute/carried_file.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

// A result that stands; one that failed on our side is made again.
Result<std::optional<TaskResult>> find_result(const LoadedTask& task, const fs::path& folder) {
  if (!is_carried(folder, kResultFile)) return std::optional<TaskResult>();
  ASSIGN_OR_RETURN(TaskResult result, read_result(task, folder));
  if (result.evaluation.verdict == Verdict::engine_failed) return std::optional<TaskResult>();
  return std::optional(std::move(result));
}

// Progress that cannot be read is set aside: the task begins anew.
std::optional<SavedProgress> find_progress(const LoadedTask& task, const fs::path& folder,
                                           const ConductorTools& tools) {
  Result<std::optional<SavedProgress>> progress = read_progress(task, folder);
  if (progress.ok()) return std::move(*progress);
  std::error_code trouble;
  fs::rename(folder / kProgressFile, folder / (std::string(kProgressFile) + ".damaged"), trouble);
  if (tools.say) tools.say("begins anew: " + progress.error().text());
  return std::nullopt;
}

}  // namespace

Result<TaskRun> run_task_folder(const fs::path& folder, const TaskRunOptions& options,
                                ConductorTools tools, const DeviceStates& devices,
                                const Clock& clock) {
  const std::string& uuid = options.conductor.device_uuid;
  if (const auto quarantine = devices.find(uuid))
    return Error{ErrorCode::unavailable, "run " + folder.string(), quarantine->text(),
                 "use another --device meanwhile"};
  ASSIGN_OR_RETURN(LoadedTask task, read_task_folder(folder));
  std::optional<SavedProgress> progress;
  if (options.as_plain) {
    task.task.kind = TaskKind::plain;
    tools.save = [](const SavedProgress&) { return Result<void>(); };
  } else {
    ASSIGN_OR_RETURN(std::optional<TaskResult> known, find_result(task, folder));
    if (known)
      return TaskRun{true, Conducted{Conducted::End::finished, std::move(*known), std::nullopt}};
    progress = find_progress(task, folder, tools);
    tools.save = [&](const SavedProgress& saved) {
      return write_progress(task.task, saved, folder);
    };
  }
  Conductor conductor(task, options.conductor, std::move(tools), clock);
  ASSIGN_OR_RETURN(Conducted conducted, conductor.run(std::move(progress)));
  if (conducted.end != Conducted::End::finished) return TaskRun{false, std::move(conducted)};
  const bool sound = conducted.result.device_trouble.empty();
  if (!sound)
    RETURN_IF_ERROR(devices.quarantine(
        {uuid, options.device_name, conducted.result.device_trouble, clock.unix_ms()}));
  if (!options.as_plain) {
    RETURN_IF_ERROR(write_result(task.task, conducted.result, folder));
    std::error_code trouble;
    // What an unsound device left of the progress is good: another one goes on from there.
    if (conducted.result.evaluation.verdict != Verdict::engine_failed)
      fs::remove(folder / kProgressFile, trouble);
  }
  return TaskRun{false, std::move(conducted)};
}

}  // namespace kbeam
