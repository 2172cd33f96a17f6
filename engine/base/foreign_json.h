// JSON from programs that nobody answers for: endpoints, agents, clients of the MCP server. It is
// bounded in depth, because a Json is copied and printed by recursion, a call a level, and in
// values, because each takes many times the memory of its two characters.
#pragma once

#include <string_view>

#include "base/json.h"

namespace kbeam {

inline constexpr int kDeepestForeignJson = 64;
inline constexpr int kMostForeignValues = 8'000'000;

// Discarded (`is_discarded()`) where the text is no JSON, nests deeper, or holds more than that.
Json parse_foreign_json(std::string_view text);

}  // namespace kbeam
