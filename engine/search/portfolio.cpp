// Champions -> one candidate with a row a regime. Does not judge it: that is done as for any
// candidate.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "search/search.h"

namespace kbeam {
namespace {

struct Entry {
  std::int64_t axis_value = 0;
  const Champion* champion = nullptr;
};

// The largest g with g * g <= a * b, kept below b so that both sides have a value of their own.
std::int64_t geometric_midpoint(std::int64_t a, std::int64_t b) {
  const __int128 product = static_cast<__int128>(a) * b;
  auto root = static_cast<std::int64_t>(std::sqrt(static_cast<long double>(product)));
  while (static_cast<__int128>(root) * root > product) --root;
  while (static_cast<__int128>(root + 1) * (root + 1) <= product) ++root;
  return std::clamp(root, a, b - 1);
}

std::vector<Entry> entries_in_order(const std::vector<Champion>& champions,
                                    const std::vector<RegimePoint>& regimes) {
  std::vector<Entry> entries;
  for (const RegimePoint& regime : regimes)
    for (const Champion& champion : champions)
      if (champion.case_name == regime.case_name) entries.push_back({regime.axis_value, &champion});
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.axis_value != b.axis_value) return a.axis_value < b.axis_value;
    return a.champion->speedup > b.champion->speedup;
  });
  const auto same = [](const Entry& a, const Entry& b) { return a.axis_value == b.axis_value; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  return entries;
}

}  // namespace

Candidate assemble_portfolio(const std::vector<Champion>& champions,
                             const std::vector<RegimePoint>& regimes,
                             const std::map<std::string, Candidate>& candidates) {
  Candidate portfolio;
  portfolio.family = "portfolio";
  portfolio.origin = "portfolio";
  const std::vector<Entry> entries = entries_in_order(champions, regimes);
  std::int64_t least = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto candidate = candidates.find(entries[i].champion->candidate_id);
    CHECK(candidate != candidates.end(),
          "every champion's candidate is passed to assemble_portfolio");
    Row row = candidate->second.row_for(entries[i].axis_value);
    row.axis_least = least;
    row.axis_most = i + 1 < entries.size()
                        ? geometric_midpoint(entries[i].axis_value, entries[i + 1].axis_value)
                        : std::numeric_limits<std::int64_t>::max();
    if (i + 1 < entries.size()) least = row.axis_most + 1;
    if (portfolio.idea_id.empty()) portfolio.idea_id = candidate->second.idea_id;
    const bool continues = !portfolio.rows.empty() && portfolio.rows.back().source == row.source &&
                           portfolio.rows.back().knobs == row.knobs;
    if (continues)
      portfolio.rows.back().axis_most = row.axis_most;
    else
      portfolio.rows.push_back(std::move(row));
  }
  if (!portfolio.rows.empty()) portfolio.id = candidate_id(portfolio);
  return portfolio;
}

}  // namespace kbeam
