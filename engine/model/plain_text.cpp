#include "model/plain_text.h"

#include <algorithm>
#include <cctype>

namespace kbeam {

std::string one_line(std::string_view text) {
  std::string line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F are controls too: terminals know U+009B for ESC [.
    const bool is_late_control = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    line += byte < ' ' || byte == 0x7F || is_late_control ? ' ' : text[i];
    if (is_late_control) ++i;
  }
  return line;
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kMostBytes = 64;
  return !name.empty() && name.size() <= kMostBytes && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-' || c == '.';
         });
}

}  // namespace kbeam
