// What a problem's checks say of one subject on every case, at both depths, rejected or not. For
// measuring checks, not candidates: nothing is timed, no verdict is formed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "session/bench_process.h"
#include "session/input_bank.h"

namespace kbeam {

struct SurveyRequest {
  CpuSeat seat;
  std::string grade;
  std::uint64_t seed = 1;  // of inputs, fresh contents and the checks' secrets: all repeat with it
  int draws = 1;           // inputs a case; a timed case gets one
};

// One report a case, draw and depth. A subject that crashes or writes astray on a case leaves no
// report there; one that cannot be started or planned at all is an error.
Result<std::vector<CheckReport>> survey_figures(const Problem& problem, ProblemCode& code,
                                                InputBank& bank, const Subject& subject,
                                                const SurveyRequest& request);

}  // namespace kbeam
