// Integer expressions over named values, as in problem.toml ("min(m, n)") and in KBEAM_REQUIRE
// ("kPanel % kWidth == 0 && kPanel <= 64"). true and false count as 1 and 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kbeam {

// + - * / % ( ) comparisons && || ! and min, max. Fails on an unknown name, a division by zero, anything else.
Result<std::int64_t> evaluate_expression(std::string_view text, const std::map<std::string, std::int64_t>& names);

std::vector<std::string> names_in_expression(std::string_view text);

}  // namespace kbeam
