// Whether two ideas in words say the same thing, so that a model's second wording of a known idea
// is not built again. Compares words, not meaning: it errs towards letting an idea through.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

// From 0 (no word in common) to 1. Case, punctuation, order, endings and filling words do not
// count.
double likeness(std::string_view a, std::string_view b);

inline constexpr double kSameIdea = 0.75;

// The first of `known` that says the same; nullptr: none does.
const std::string* find_same_idea(const std::string& idea, const std::vector<std::string>& known);

}  // namespace kbeam
