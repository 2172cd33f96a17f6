#include "base/spelling.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace kbeam {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> before(width), last(width), current(width);  // rows i - 2, i - 1 and i
  for (std::size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < width; ++j) {
      const int substitute = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({substitute, last[j] + 1, current[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(current);
  }
  return last[b.size()];
}

std::optional<std::string> closest_word(std::string_view word,
                                        std::span<const std::string> candidates) {
  const std::string wanted = lower_case(word);
  std::optional<std::string> closest;
  int least = 4;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(wanted, lower_case(candidate));
    const int longest = static_cast<int>(std::max(word.size(), candidate.size()));
    if (distance < least && distance <= std::max(1, longest / 3) && distance < longest) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

}  // namespace kbeam
