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

// The text with spliced lines joined, as the compiler joins them before it looks for anything else:
// a backslash, blanks and the end of a line are nothing, be it within `*/` or a name.
struct JoinedLines {
  std::string text;
  std::vector<std::size_t> origin;  // of each character, and of the end
  std::vector<int> line;            // the same

  explicit JoinedLines(std::string_view source) {
    int number = 1;
    for (std::size_t at = 0; at < source.size();) {
      if (const std::size_t length = splice_length(source.substr(at))) {
        at += length;
        ++number;
        continue;
      }
      add(source[at], at, number);
      if (source[at++] == '\n') ++number;
    }
    add('\0', source.size(), number);
    text.pop_back();
  }

 private:
  static std::size_t splice_length(std::string_view rest) {
    if (!rest.starts_with('\\')) return 0;
    std::size_t length = 1;
    while (length < rest.size() && is_layout(rest[length])) ++length;
    return length < rest.size() && rest[length] == '\n' ? length + 1 : 0;
  }
  void add(char c, std::size_t from, int number) {
    text += c;
    origin.push_back(from);
    line.push_back(number);
  }
};

class Lexer {
 public:
  explicit Lexer(std::string_view source)
      : original_(source), joined_(source), source_(joined_.text) {}

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

  int line() const { return joined_.line[at_]; }

  void end_directive() {
    if (!in_directive_) return;
    in_directive_ = false;
    tokens_.push_back({.kind = Kind::directive_end, .line = line()});
  }

  void skip_layout() {
    while (at_ < source_.size()) {
      if (peek() == '\n') {
        end_directive();
        line_start_ = true;
        ++at_;
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

  void skip_line_comment() { at_ = std::min(source_.find('\n', at_), source_.size()); }

  void skip_block_comment() {
    const std::size_t end = source_.find("*/", at_ + 2);
    at_ = end == std::string_view::npos ? source_.size() : end + 2;
  }

  CppToken& add(Kind kind, std::string text, int line) {
    tokens_.push_back(
        {.kind = kind, .text = std::move(text), .line = line, .space_before = space_});
    space_ = false;
    line_start_ = false;
    return tokens_.back();
  }

  void read_token() {
    const int line = this->line();
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
    while (is_layout(peek()) || starts("/*"))
      if (starts("/*"))
        skip_block_comment();
      else
        ++at_;
    in_directive_ = true;
    add(Kind::directive, read_letters(), line);
  }

  std::string read_letters() {
    std::string word;
    while (is_letter(peek()) || is_digit(peek())) word += source_[at_++];
    return word;
  }

  void read_word(int line) {
    const std::string word = read_letters();
    if ((peek() == '"' || peek() == '\'') && is_string_prefix(word)) return read_quoted(word, line);
    add(Kind::identifier, word, line);
  }

  void read_number(int line) {
    std::string text;
    for (;;) {
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
      if (peek() == '\\' && at_ + 1 < source_.size()) content += source_[at_++];
      if (at_ < source_.size()) content += source_[at_++];
    }
    if (peek() == quote) ++at_;
    std::string text = prefix + quote + content + quote;
    add(quote == '"' ? Kind::string : Kind::character, std::move(text), line).content = content;
  }

  // In a raw string no lines are joined: its end is looked for in the text as it stands.
  void read_raw_string(const std::string& prefix, int line) {
    const std::size_t begin = joined_.origin[at_];
    const std::size_t open = std::min(original_.find('(', begin), original_.size());
    std::string closing(1, ')');
    closing += original_.substr(begin + 1, open - begin - 1);
    closing += '"';
    const std::size_t close = std::min(original_.find(closing, open), original_.size());
    const std::size_t end = std::min(close + closing.size(), original_.size());
    std::string content;
    if (open < close) content = original_.substr(open + 1, close - open - 1);
    std::string text = prefix + std::string(original_.substr(begin, end - begin));
    const auto after = std::lower_bound(joined_.origin.begin(), joined_.origin.end(), end);
    at_ = static_cast<std::size_t>(after - joined_.origin.begin());
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

  std::string_view original_;
  JoinedLines joined_;
  std::string_view source_;  // joined
  std::vector<CppToken> tokens_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  bool in_directive_ = false;
  bool space_ = false;
};

}  // namespace

std::vector<CppToken> cpp_tokens(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace kbeam
