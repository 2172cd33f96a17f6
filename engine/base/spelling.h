// "Did you mean ...?": the nearest of the words that would have been right. Knows no dictionary.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kbeam {

// Insertions, deletions, substitutions and swaps of neighbours, each at cost 1 (optimal string
// alignment).
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, ignoring case; the first of equals. Nothing when none is near
// enough to be a typing mistake: at most a third of the longer word, and never more than 3 edits.
std::optional<std::string> closest_word(std::string_view word,
                                        std::span<const std::string> candidates);

}  // namespace kbeam
