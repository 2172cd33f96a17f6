// What changed from one source to another, line by line, for people. Does not know candidates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

struct DiffLine {
  char sign = ' ';  // '-' only before, '+' only after, ' ' in both, '@' where lines are left out
  std::string_view text;
};

struct SourceDiff {
  std::vector<DiffLine> lines;  // changes with three lines around them; empty when nothing changed
  int added = 0;
  int removed = 0;
};

// The views lead into `before` and `after`. Sources that share too little to be compared within
// reason are given as replaced as a whole.
SourceDiff diff_sources(std::string_view before, std::string_view after);

}  // namespace kbeam
