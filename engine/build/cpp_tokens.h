// Source text as C++ tokens: comments, strings, raw strings, spliced lines and digit separators are
// understood; macros are not expanded and nothing is judged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

struct CppToken {
  enum class Kind { identifier, number, string, character, punctuation, directive, directive_end };
  Kind kind = Kind::punctuation;
  std::string text;           // as written; of a directive its name ("include"), of its end nothing
  std::string content;        // of a string: what is between the quotes
  int line = 1;               // 1-based
  bool space_before = false;  // layout or a comment stood before it

  bool is(std::string_view punctuation) const {
    return kind == Kind::punctuation && text == punctuation;
  }
};

// A directive is the token `directive`, the tokens of its line, and `directive_end`.
// `<kbeam/plan.h>` after include is one string token with its angle brackets as text.
std::vector<CppToken> cpp_tokens(std::string_view source);

}  // namespace kbeam
