// The promotion gate for device code: every kernel of a candidate runs once without and once under
// each tool of compute-sanitizer; the tools must be content and the outputs the same.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "execute/evaluation_task.h"

namespace kbeam {

// Names of check cases, cheapest first, that together launch every kernel (with every block shape)
// that any case of the task launches. A kernel that only a timed case launches brings that case in.
std::vector<std::string> choose_sanitizer_cases(const EvaluationTask& task, const TaskFiles& files);

struct SanitizerGate {
  std::filesystem::path sanitizer;  // compute-sanitizer
  std::filesystem::path worker;
  int device = 0;
  double timeout_s = 1800;  // of one tool
  std::function<bool()> give_up;
};

struct SanitizerFinding {
  Verdict verdict = Verdict::race;
  std::string sentence;  // the tool and what it said first
};

// Nothing where every tool is content. `task_folder` holds a task of kind plain.
Result<std::optional<SanitizerFinding>> pass_sanitizers(const SanitizerGate& gate,
                                                        const std::filesystem::path& task_folder);

}  // namespace kbeam
