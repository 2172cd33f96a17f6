// Text that others wrote, made fit for one line of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kbeam {

// Control characters, those of the upper half in UTF-8 too, become spaces: a terminal obeys them.
// What is longer than `most` bytes ends in "...".
std::string shown_line(std::string_view text, std::size_t most = 1000);

}  // namespace kbeam
