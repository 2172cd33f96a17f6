#include "build/knob_value.h"

#include <cstddef>
#include <string>
#include <vector>

#include "build/cpp_tokens.h"

namespace kbeam {
namespace {

using Kind = CppToken::Kind;

constexpr std::size_t kLongestValue = 128;

bool is_ascii_word(std::string_view text) {
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-") ==
         std::string_view::npos;
}

}  // namespace

bool is_knob_name(std::string_view text) {
  const std::vector<CppToken> tokens = cpp_tokens(text);
  return tokens.size() == 1 && tokens[0].kind == Kind::identifier && tokens[0].text == text &&
         is_ascii_word(text) && text.size() <= kLongestValue;
}

bool is_knob_value(std::string_view text) {
  std::string without_colons(text);
  std::erase(without_colons, ':');
  if (text.size() > kLongestValue || !is_ascii_word(without_colons)) return false;
  const std::vector<CppToken> tokens = cpp_tokens(text);
  std::size_t at = !tokens.empty() && tokens[0].is("-") ? 1 : 0;
  const bool signed_value = at == 1;
  if (at == tokens.size()) return false;
  if (tokens[at].kind == Kind::number) return at + 1 == tokens.size();
  if (signed_value) return false;
  if (tokens[at].is("::")) ++at;
  for (; at < tokens.size(); at += 2) {
    if (tokens[at].kind != Kind::identifier) return false;
    if (at + 1 == tokens.size()) return true;
    if (!tokens[at + 1].is("::")) return false;
  }
  return false;
}

}  // namespace kbeam
