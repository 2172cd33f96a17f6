// The promotion gate for device code: every kernel of a candidate runs once without and once under
// each tool of compute-sanitizer; the tools must be content and the outputs the same.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "execute/evaluation_task.h"
#include "model/evaluation.h"

namespace kbeam {

// Names of check cases, least arithmetic first, that together launch every kernel (with every block
// shape) that any case of the task launches. A kernel that only a timed case launches brings that
// case in.
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
  std::function<void(std::string_view)> say;  // the tool, and for a slow one the case, that begins
  // A slow tool's word on a case is kept here, under what the case launches, so that a promotion
  // that was broken off does not wait for it again. Empty: nothing is kept.
  std::filesystem::path kept;
  // What a case launches, as a hash of its plan and of the machine code.
  std::function<std::string(const std::string& case_name)> launches_of;
};

// Writes a task of kind plain that checks these cases, and returns its folder.
using WritePlainTask =
    std::function<Result<std::filesystem::path>(const std::vector<std::string>& cases)>;

struct SanitizerFindings {
  // One a tool, in the order in which they ran; none follows one that found something.
  std::vector<GateResult> results;
  // The first case on which that one did, where it can be told: a portfolio is to lose the row that
  // failed, not all of them.
  std::string failed_case;
};
Result<SanitizerFindings> pass_sanitizers(const SanitizerGate& gate,
                                          const std::vector<std::string>& cases,
                                          const WritePlainTask& write_task);

}  // namespace kbeam
