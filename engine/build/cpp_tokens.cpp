#include "build/cpp_tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace kbeam {
namespace {

using Kind = CppToken::Kind;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 128;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_layout(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

// A string prefix such as u8R; tells whether the string that follows is raw.
bool is_string_prefix(std::string_view word) {
  constexpr std::array<std::string_view, 9> kPrefixes = {"u8",  "u",  "U",  "L", "R",
                                                         "u8R", "uR", "UR", "LR"};
  return std::find(kPrefixes.begin(), kPrefixes.end(), word) != kPrefixes.end();
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<CppToken> run() {
    while (skip_layout(), at_ < source_.size()) read_token();
    end_directive();
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view text) const { return source_.substr(at_, text.size()) == text; }

  // The length of a backslash that joins this line with the next; 0 when there is none.
  std::size_t splice_length() const {
    if (peek() != '\\') return 0;
    if (peek(1) == '\n') return 2;
    return peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
  }

  void advance() {
    if (peek() == '\n') ++line_;
    ++at_;
  }

  void skip_splices() {
    while (const std::size_t length = splice_length()) {
      at_ += length;
      ++line_;
    }
  }

  void end_directive() {
    if (!in_directive_) return;
    in_directive_ = false;
    tokens_.push_back({.kind = Kind::directive_end, .line = line_});
  }

  void skip_layout() {
    while (at_ < source_.size()) {
      if (const std::size_t length = splice_length()) {
        at_ += length;
        ++line_;
      } else if (peek() == '\n') {
        end_directive();
        line_start_ = true;
        advance();
      } else if (is_layout(peek())) {
        ++at_;
      } else if (starts("//")) {
        skip_line_comment();
      } else if (starts("/*")) {
        skip_block_comment();
      } else {
        return;
      }
      space_ = true;
    }
  }

  void skip_line_comment() {
    while (at_ < source_.size() && peek() != '\n') {
      skip_splices();
      if (peek() != '\n') ++at_;
    }
  }

  void skip_block_comment() {
    at_ += 2;
    while (at_ < source_.size() && !starts("*/")) advance();
    at_ = std::min(at_ + 2, source_.size());
  }

  CppToken& add(Kind kind, std::string text, int line) {
    tokens_.push_back(
        {.kind = kind, .text = std::move(text), .line = line, .space_before = space_});
    space_ = false;
    line_start_ = false;
    return tokens_.back();
  }

  void read_token() {
    const int line = line_;
    if (line_start_ && (peek() == '#' || starts("%:"))) return read_directive_name(line);
    if (peek() == '"' || peek() == '\'') return read_quoted("", line);
    if (is_digit(peek()) || (peek() == '.' && is_digit(peek(1)))) return read_number(line);
    if (is_letter(peek())) return read_word(line);
    if (peek() == '<' && is_header_position()) return read_header_name(line);
    read_punctuation(line);
  }

  void read_directive_name(int line) {
    at_ += peek() == '#' ? 1 : 2;
    line_start_ = false;
    while (at_ < source_.size() && peek() != '\n' &&
           (is_layout(peek()) || splice_length() > 0 || starts("/*")))
      if (starts("/*"))
        skip_block_comment();
      else if (splice_length() > 0)
        skip_splices();
      else
        ++at_;
    in_directive_ = true;
    add(Kind::directive, read_letters(), line);
  }

  std::string read_letters() {
    std::string word;
    for (skip_splices(); is_letter(peek()) || is_digit(peek()); skip_splices())
      word += source_[at_++];
    return word;
  }

  void read_word(int line) {
    const std::string word = read_letters();
    if ((peek() == '"' || peek() == '\'') && is_string_prefix(word)) return read_quoted(word, line);
    add(Kind::identifier, word, line);
  }

  void read_number(int line) {
    std::string text;
    for (skip_splices();; skip_splices()) {
      const bool separates = peek() == '\'' && (is_digit(peek(1)) || is_letter(peek(1)));
      const bool is_sign = (peek() == '+' || peek() == '-') && !text.empty() &&
                           std::string_view("eEpP").find(text.back()) != std::string_view::npos;
      if (!is_letter(peek()) && !is_digit(peek()) && peek() != '.' && !separates && !is_sign) break;
      text += source_[at_++];
    }
    add(Kind::number, text, line);
  }

  void read_quoted(const std::string& prefix, int line) {
    if (peek() == '"' && prefix.ends_with('R')) return read_raw_string(prefix, line);
    const char quote = source_[at_++];
    std::string content;
    while (at_ < source_.size() && peek() != quote && peek() != '\n') {
      skip_splices();
      if (peek() == quote || peek() == '\n') break;
      if (peek() == '\\' && at_ + 1 < source_.size()) content += source_[at_++];
      if (at_ < source_.size()) content += source_[at_++];
    }
    if (peek() == quote) ++at_;
    std::string text = prefix + quote + content + quote;
    add(quote == '"' ? Kind::string : Kind::character, std::move(text), line).content = content;
  }

  void read_raw_string(const std::string& prefix, int line) {
    const std::size_t begin = at_;
    const std::size_t open = std::min(source_.find('(', at_), source_.size());
    std::string closing(1, ')');
    closing += source_.substr(at_ + 1, open - at_ - 1);
    closing += '"';
    const std::size_t close = source_.find(closing, open);
    const std::size_t end =
        close == std::string_view::npos ? source_.size() : close + closing.size();
    const std::size_t inside_end = close == std::string_view::npos ? source_.size() : close;
    std::string content;
    if (open < inside_end) content = source_.substr(open + 1, inside_end - open - 1);
    std::string text = prefix + std::string(source_.substr(begin, end - begin));
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    at_ = end;
    add(Kind::string, std::move(text), line).content = content;
  }

  // Directly after #include, #include_next, #import or #embed, or inside __has_include( and its
  // kin.
  bool is_header_position() const {
    if (tokens_.empty()) return false;
    const CppToken& last = tokens_.back();
    if (last.kind == Kind::directive)
      return last.text.starts_with("include") || last.text == "import" || last.text == "embed";
    return last.is("(") && tokens_.size() > 1 &&
           tokens_[tokens_.size() - 2].text.starts_with("__has_");
  }

  void read_header_name(int line) {
    const std::size_t end = source_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || source_[end] == '\n') return read_punctuation(line);
    std::string text(source_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    std::string content = text.substr(1, text.size() - 2);
    add(Kind::string, std::move(text), line).content = std::move(content);
  }

  void read_punctuation(int line) {
    constexpr std::array<std::string_view, 25> kLong = {
        "<<=", ">>=", "<=>", "...", "->*", "::", "->", "<<", ">>", "<=", ">=", "==", "!=",
        "&&",  "||",  "++",  "--",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^="};
    for (const std::string_view text : kLong) {
      if (!starts(text)) continue;
      at_ += text.size();
      add(Kind::punctuation, std::string(text), line);
      return;
    }
    add(Kind::punctuation, std::string(1, source_[at_++]), line);
  }

  std::string_view source_;
  std::vector<CppToken> tokens_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  bool in_directive_ = false;
  bool space_ = false;
};

}  // namespace

std::vector<CppToken> cpp_tokens(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace kbeam
