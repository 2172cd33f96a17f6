// Integer expressions over named values, as in problem.toml ("min(m, n)") and in KBEAM_REQUIRE
// ("kPanel % kWidth == 0 && kPanel <= 64"). 64-bit signed arithmetic only: no types, casts or
// calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kbeam {

// C++ operators and precedence: + - * / % << >> & | ^ ~ ! comparisons && || ?: ( ), and min and max
// of two or more values (also as std::min, std::max). true and false are 1 and 0. A name may be
// qualified ("kbeam::kNativeFloats"). Fails on an unknown name wherever it stands, on overflow and
// division by zero where they are reached, and on anything else that it does not know.
Result<std::int64_t> evaluate_expression(std::string_view text,
                                         const std::map<std::string, std::int64_t>& names);

// Each name once, in order of appearance; true, false, min and max are none. Works on malformed
// text too.
std::vector<std::string> names_in_expression(std::string_view text);

}  // namespace kbeam
