#include "base/shown_text.h"

namespace kbeam {
namespace {

bool is_continuation(char letter) {
  return (static_cast<unsigned char>(letter) & 0xc0) == 0x80;
}

}  // namespace

std::string shown_line(std::string_view text, std::size_t most) {
  std::string shown(text.substr(0, most));
  if (text.size() > most) {
    // Not in the middle of a character.
    if (is_continuation(text[most])) {
      while (!shown.empty() && is_continuation(shown.back())) shown.pop_back();
      if (!shown.empty()) shown.pop_back();
    }
    shown += "...";
  }
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto letter = static_cast<unsigned char>(shown[i]);
    const bool is_upper_control = letter == 0xc2 && i + 1 < shown.size() &&
                                  is_continuation(shown[i + 1]) &&
                                  static_cast<unsigned char>(shown[i + 1]) < 0xa0;
    if (letter < ' ' || letter == 0x7f || is_upper_control) shown[i] = ' ';
    if (is_upper_control) shown[++i] = ' ';
  }
  return shown;
}

}  // namespace kbeam
