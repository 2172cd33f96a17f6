// What one sketch learned about a knob is worth a try in another sketch that has a knob of that
// name: whether to stream, how far to prefetch. Chooses who lends and for which regime.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "search/target_choice.h"

namespace kbeam {

struct Loan {
  std::string case_name;
  Suggestion suggestion;
};

// The borrower's best setting of a regime in which it is strong, with the knobs that it shares with
// the best of the others there set as they have them. Nothing when nobody gained over its default,
// or when that setting was tried.
std::optional<Loan> borrow(std::size_t borrower, const SearchView& view);

}  // namespace kbeam
