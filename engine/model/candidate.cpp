#include "model/candidate.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/hash.h"

namespace kbeam {
namespace {

// How far a value lies outside the row's range; 0 when the row serves it.
std::uint64_t distance_to(const Row& row, std::int64_t axis_value) {
  if (axis_value < row.axis_least)
    return static_cast<std::uint64_t>(row.axis_least) - static_cast<std::uint64_t>(axis_value);
  if (axis_value > row.axis_most)
    return static_cast<std::uint64_t>(axis_value) - static_cast<std::uint64_t>(row.axis_most);
  return 0;
}

}  // namespace

// Every value has a row: one that no range covers goes to the nearest range, the first of equals.
std::size_t Candidate::row_index_for(std::int64_t axis_value) const {
  CHECK(!rows.empty(), "a candidate has at least one row");
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (distance_to(rows[i], axis_value) < distance_to(rows[nearest], axis_value)) nearest = i;
  return nearest;
}

const Row& Candidate::row_for(std::int64_t axis_value) const {
  return rows[row_index_for(axis_value)];
}

std::vector<std::size_t> Candidate::rows_to_ask(std::int64_t axis_value) const {
  const std::size_t own = row_index_for(axis_value);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t i) {
    const std::int64_t least = rows[i].axis_least, own_least = rows[own].axis_least;
    if (i == own) return std::pair{0, std::int64_t{0}};
    return least >= own_least ? std::pair{1, least} : std::pair{2, -least};
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

// Covers what decides behaviour: not the file's name, the family or where the idea came from.
std::string candidate_id(const Candidate& candidate) {
  Hasher hasher;
  hasher.field(static_cast<std::int64_t>(candidate.rows.size()));
  for (const Row& row : candidate.rows) {
    hasher.field(row.source).field(row.axis_least).field(row.axis_most);
    hasher.field(static_cast<std::int64_t>(row.knobs.size()));
    for (const auto& [name, value] : row.knobs) hasher.field(name).field(value);
  }
  return hasher.hex().substr(0, 12);
}

std::string describe_knobs(const KnobValues& knobs) {
  std::string text;
  for (const auto& [name, value] : knobs) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

}  // namespace kbeam
