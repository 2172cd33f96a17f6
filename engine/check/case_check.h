// Runs a problem's check on one output and turns what it reports into a CheckReport.
// Knows no process and no clock: outputs come from wherever the caller got them.
#pragma once

#include <kbeam/problem.h>

#include <span>

#include "model/evaluation.h"

namespace kbeam {

// A check that reports nothing at all is an engine_failed, never a pass.
CheckReport check_outputs(ProblemCode& problem, const CaseView& the_case,
                          const CheckRequest& request, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs);

// Keeps the worst figure of each name and the first failure, over the calls of one case.
void merge_reports(CheckReport& into, const CheckReport& more);

}  // namespace kbeam
