// The promotion gate for device code: every kernel of a candidate runs once without and once under
// each tool of compute-sanitizer; the tools must be content and the outputs the same.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "execute/evaluation_task.h"
#include "model/evaluation.h"

namespace kbeam {

// Names of check cases, cheapest first, that together launch every kernel (with every block shape)
// that any case of the task launches. A kernel that only a timed case launches brings that case in.
std::vector<std::string> choose_sanitizer_cases(const EvaluationTask& task, const TaskFiles& files);

struct SanitizerGate {
  std::filesystem::path sanitizer;  // compute-sanitizer
  std::filesystem::path worker;
  int device = 0;
  double timeout_s = 1800;  // of one tool
  // False for plans that call a library: initcheck first instruments all of cuBLAS, which takes
  // longer than anything else here.
  bool watch_initialisation = true;
  std::function<bool()> give_up;
};

// One result a tool, in the order in which they ran; none follows one that found something.
// `task_folder` holds a task of kind plain.
Result<std::vector<GateResult>> pass_sanitizers(const SanitizerGate& gate,
                                                const std::filesystem::path& task_folder);

}  // namespace kbeam
