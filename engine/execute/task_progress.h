// What is done of a task so far, so that a worker that was killed or ran out of time goes on from
// there. Sealed like a result: it becomes one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "execute/evaluation_task.h"

namespace kbeam {

struct TaskProgress {
  TaskResult so_far;                 // its verdict is `accepted` until another one is found
  std::vector<std::string> checked;  // check cases that are done
};

// `last_good` is how things stood when the device last passed its probe: what came after it is void
// if the next probe fails.
struct SavedProgress {
  TaskProgress now;
  TaskProgress last_good;
};

Result<void> write_progress(const EvaluationTask& task, const SavedProgress& progress,
                            const std::filesystem::path& folder);
// Nothing when there is none. Progress of another task or damaged progress is an error.
Result<std::optional<SavedProgress>> read_progress(const LoadedTask& task,
                                                   const std::filesystem::path& folder);

}  // namespace kbeam
