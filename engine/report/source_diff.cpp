#include "report/source_diff.h"

#include <algorithm>
#include <cstdint>

namespace kbeam {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::size_t kMostCells = 16'000'000;  // of the table that finds the common lines

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

using Lines = std::vector<std::string_view>;

// The middle of both, where they differ, by the longest common subsequence.
void diff_middle(const Lines& before, const Lines& after, std::vector<DiffLine>& all) {
  const std::size_t rows = before.size(), columns = after.size();
  const auto replace = [&] {
    for (const std::string_view line : before) all.push_back({'-', line});
    for (const std::string_view line : after) all.push_back({'+', line});
  };
  if (rows == 0 || columns == 0 || (rows + 1) * (columns + 1) > kMostCells) return replace();
  // common[r][c]: length of the longest common subsequence of before[r..] and after[c..].
  std::vector<std::uint16_t> common((rows + 1) * (columns + 1), 0);
  const auto at = [&](std::size_t r, std::size_t c) -> std::uint16_t& {
    return common[r * (columns + 1) + c];
  };
  for (std::size_t r = rows; r-- > 0;)
    for (std::size_t c = columns; c-- > 0;)
      at(r, c) = before[r] == after[c] ? static_cast<std::uint16_t>(at(r + 1, c + 1) + 1)
                                       : std::max(at(r + 1, c), at(r, c + 1));
  std::size_t r = 0, c = 0;
  while (r < rows || c < columns) {
    if (r < rows && c < columns && before[r] == after[c]) {
      all.push_back({' ', before[r++]});
      ++c;
    } else if (r < rows && (c == columns || at(r + 1, c) >= at(r, c + 1))) {
      all.push_back({'-', before[r++]});
    } else {
      all.push_back({'+', after[c++]});
    }
  }
}

// Keeps the changes and the lines around them.
std::vector<DiffLine> keep_near_changes(const std::vector<DiffLine>& all) {
  std::vector<bool> near(all.size(), false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].sign == ' ') continue;
    const std::size_t last = std::min(all.size() - 1, i + kContext);
    for (std::size_t j = i >= kContext ? i - kContext : 0; j <= last; ++j) near[j] = true;
  }
  std::vector<DiffLine> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (near[i])
      kept.push_back(all[i]);
    else if (i == 0 || near[i - 1])
      kept.push_back({'@', {}});
  }
  return kept;
}

}  // namespace

SourceDiff diff_sources(std::string_view before, std::string_view after) {
  Lines a = split_lines(before), b = split_lines(after);
  std::size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  std::vector<DiffLine> all;
  for (std::size_t i = 0; i < head; ++i) all.push_back({' ', a[i]});
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  diff_middle(middle(a), middle(b), all);
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) all.push_back({' ', a[i]});
  SourceDiff diff;
  diff.added = static_cast<int>(std::ranges::count(all, '+', &DiffLine::sign));
  diff.removed = static_cast<int>(std::ranges::count(all, '-', &DiffLine::sign));
  if (diff.added + diff.removed > 0) diff.lines = keep_near_changes(all);
  return diff;
}

}  // namespace kbeam
