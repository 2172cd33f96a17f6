// The problem in words for whoever proposes: what problem.toml declares and its README, without
// private cases, seeds or the checker's code.
#pragma once

#include <string>

#include "model/problem.h"

namespace kbeam {

// Markdown. `problem` as its target sees it (for_target). The README is cut when it is long.
std::string problem_statement(const Problem& problem);

}  // namespace kbeam
