// The figures of a check that ran on the device: decodes the cells, compares with the limits and
// spells where the worst values were.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/evaluation.h"
#include "model/launch_plan.h"

namespace kbeam {

// "matrix 3, column 7": the last name runs fastest.
std::string spell_place(const PlanFigure& figure, std::uint32_t index);

// cells[i] is {FP32 bits of the worst value << 32 | where} of check.figures[i]. A NaN fails any
// limit. The first figure that fails gives verdict and sentence; a check without figures is
// engine_failed, never a pass.
CheckReport report_of_figures(const LaunchPlan& check, std::span<const std::uint64_t> cells);

}  // namespace kbeam
