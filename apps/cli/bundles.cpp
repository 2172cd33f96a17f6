#include "apps/cli/bundles.h"

#include <system_error>

#include "base/files.h"

namespace kbeam::cli {
namespace fs = std::filesystem;

namespace {

fs::path note_of(const fs::path& run, const std::string& task_id) {
  return run / "bundles" / (task_id + ".sha256");
}

}  // namespace

Result<void> note_bundle(const fs::path& run, const fs::path& folder) {
  ASSIGN_OR_RETURN(const LoadedTask task, read_task_folder(folder));
  const fs::path note = note_of(run, task.task.id);
  std::error_code trouble;
  fs::create_directories(note.parent_path(), trouble);
  return write_file(note, task.task_hash + "\n");
}

Result<void> must_be_bundled(const fs::path& run, const LoadedTask& task) {
  const std::string attempted = "collect task " + task.task.id + " into " + run.string();
  const Result<std::string> noted = read_file(note_of(run, task.task.id));
  if (!noted.ok())
    return Error{ErrorCode::corrupt, attempted, "it is foreign: this run did not bundle it",
                 "name the run that did with --run"};
  if (*noted != task.task_hash + "\n")
    return Error{ErrorCode::corrupt, attempted,
                 "it is foreign: the task was changed since this run bundled it",
                 "bundle it again"};
  return {};
}

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code trouble;
  for (const auto& entry : fs::recursive_directory_iterator(folder, trouble))
    if (entry.is_regular_file(trouble)) bytes += entry.file_size(trouble);
  return bytes;
}

}  // namespace kbeam::cli
