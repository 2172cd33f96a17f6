#include "base/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "base/spelling.h"

namespace kbeam {
namespace {

// Deeper nesting than any person writes; bounds the recursion on hostile text.
constexpr int kDeepest = 400;

enum class TokenKind { number, name, symbol, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  std::size_t position = 0;
};

bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool continues_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    if (at_ >= text_.size()) return {TokenKind::end, {}, text_.size()};
    const std::size_t begin = at_;
    const char first = text_[at_];
    if (starts_name(first)) return {TokenKind::name, take_name(), begin};
    if (std::isdigit(static_cast<unsigned char>(first)))
      return {TokenKind::number, take_number(), begin};
    return {TokenKind::symbol, take_symbol(), begin};
  }

 private:
  // A qualified name is one token: a::b::c.
  std::string_view take_name() {
    const std::size_t begin = at_;
    for (;;) {
      while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
      const bool qualified =
          text_.substr(at_, 2) == "::" && at_ + 2 < text_.size() && starts_name(text_[at_ + 2]);
      if (!qualified) return text_.substr(begin, at_ - begin);
      at_ += 2;
    }
  }

  // Everything that belongs to the literal, so that 12x and 1.5 are one bad number, not two tokens.
  std::string_view take_number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (continues_name(text_[at_]) || text_[at_] == '\'' || text_[at_] == '.'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::string_view take_symbol() {
    static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    const std::string_view two = text_.substr(at_, 2);
    const std::size_t length =
        std::find(std::begin(kPairs), std::end(kPairs), two) != std::end(kPairs) ? 2 : 1;
    at_ += length;
    return text_.substr(at_ - length, length);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Binary operators by how tightly they bind, as in C++; 0 is none.
int precedence_of(std::string_view symbol) {
  static constexpr std::pair<std::string_view, int> kTable[] = {
      {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
      {"!=", 6}, {"<", 7},  {"<=", 7}, {">", 7},  {">=", 7}, {"<<", 8},
      {">>", 8}, {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  for (const auto& [text, precedence] : kTable)
    if (text == symbol) return precedence;
  return 0;
}

// Decimal, 0x, 0b and octal, with ' between digits and the suffixes l and ll. Unsigned literals
// change what a comparison means in C++, so they are refused rather than approximated.
std::optional<std::int64_t> parse_number(std::string_view text) {
  std::string digits;
  for (const char c : text)
    if (c != '\'') digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  int base = 10;
  std::size_t at = 0;
  if (digits.starts_with("0x")) base = 16, at = 2;
  if (digits.starts_with("0b")) base = 2, at = 2;
  if (base == 10 && digits.size() > 1 && digits[0] == '0') base = 8, at = 1;
  for (int suffix = 0; suffix < 2 && digits.size() > at + 1 && digits.back() == 'l'; ++suffix)
    digits.pop_back();
  if (at >= digits.size()) return std::nullopt;
  std::int64_t value = 0;
  for (; at < digits.size(); ++at) {
    const char c = digits[at];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
      return std::nullopt;
  }
  return value;
}

bool is_function(std::string_view name) {
  return name == "min" || name == "max" || name == "std::min" || name == "std::max";
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const std::map<std::string, std::int64_t>& names)
      : text_(text), names_(names), lexer_(text) {
    advance();
  }

  Result<std::int64_t> run() {
    const std::int64_t value = ternary();
    if (!error_ && token_.kind != TokenKind::end)
      fail(fmt::format("unexpected '{}'", token_.text), token_.position);
    if (error_) return *error_;
    return value;
  }

 private:
  // Evaluates what it reads, but reports no overflow or division by zero: the value is not wanted.
  class Skipped {
   public:
    Skipped(Evaluator& evaluator, std::int64_t condition)
        : evaluator_(evaluator), step_(condition != 0 ? 1 : 0) {
      evaluator_.skipping_ += step_;
    }
    ~Skipped() { evaluator_.skipping_ -= step_; }

   private:
    Evaluator& evaluator_;
    int step_;
  };

  void advance() { token_ = lexer_.next(); }

  bool accept(std::string_view symbol) {
    if (token_.kind != TokenKind::symbol || token_.text != symbol) return false;
    advance();
    return true;
  }

  void expect(std::string_view symbol) {
    if (accept(symbol) || error_) return;
    fail(token_.kind == TokenKind::end
             ? fmt::format("expected '{}' but found the end", symbol)
             : fmt::format("expected '{}' but found '{}'", symbol, token_.text),
         token_.position);
  }

  // The first error wins; the rest of the text is dropped so that every loop ends.
  std::int64_t fail(const std::string& what, std::size_t position, const std::string& advice = "") {
    if (error_) return 0;
    error_ = Error{ErrorCode::bad_input, fmt::format("evaluate '{}'", text_),
                   fmt::format("{} at character {}", what, position + 1),
                   advice.empty() ? "use integers, names, C++ operators, min and max" : advice};
    lexer_ = Lexer("");
    advance();
    return 0;
  }

  std::int64_t fail_if_wanted(const std::string& what, std::size_t position) {
    return skipping_ > 0 ? 0 : fail(what, position);
  }

  std::int64_t ternary() {
    if (++depth_ > kDeepest)
      return fail(fmt::format("nesting deeper than {}", kDeepest), token_.position);
    const std::int64_t condition = binary(1);
    std::int64_t value = condition;
    if (accept("?")) {
      std::int64_t chosen = 0;
      {
        const Skipped skipped(*this, condition == 0);
        chosen = ternary();
      }
      expect(":");
      const Skipped skipped(*this, condition != 0);
      const std::int64_t other = ternary();
      value = condition != 0 ? chosen : other;
    }
    --depth_;
    return value;
  }

  std::int64_t binary(int least_precedence) {
    std::int64_t left = unary();
    while (token_.kind == TokenKind::symbol) {
      const Token operation = token_;
      const int precedence = precedence_of(operation.text);
      if (precedence == 0 || precedence < least_precedence) break;
      advance();
      const bool decided =
          (operation.text == "&&" && left == 0) || (operation.text == "||" && left != 0);
      const Skipped skipped(*this, decided);
      const std::int64_t right = binary(precedence + 1);
      left = apply(operation, left, right);
    }
    return left;
  }

  std::int64_t apply(const Token& operation, std::int64_t left, std::int64_t right) {
    const std::string_view symbol = operation.text;
    if (symbol == "||") return left != 0 || right != 0;
    if (symbol == "&&") return left != 0 && right != 0;
    if (symbol == "|") return left | right;
    if (symbol == "^") return left ^ right;
    if (symbol == "&") return left & right;
    if (symbol == "==") return left == right;
    if (symbol == "!=") return left != right;
    if (symbol == "<") return left < right;
    if (symbol == "<=") return left <= right;
    if (symbol == ">") return left > right;
    if (symbol == ">=") return left >= right;
    return arithmetic(operation, left, right);
  }

  std::int64_t arithmetic(const Token& operation, std::int64_t left, std::int64_t right) {
    const std::string_view symbol = operation.text;
    std::int64_t value = 0;
    bool overflow = false;
    if (symbol == "+") overflow = __builtin_add_overflow(left, right, &value);
    if (symbol == "-") overflow = __builtin_sub_overflow(left, right, &value);
    if (symbol == "*") overflow = __builtin_mul_overflow(left, right, &value);
    if (symbol == "<<" || symbol == ">>") {
      if (right < 0 || right > 62)
        return fail_if_wanted(fmt::format("a shift by {}", right), operation.position);
      if (symbol == ">>") return left >> right;
      overflow = __builtin_mul_overflow(left, std::int64_t{1} << right, &value);
    }
    if (symbol == "/" || symbol == "%") {
      if (right == 0) return fail_if_wanted("a division by zero", operation.position);
      overflow = left == std::numeric_limits<std::int64_t>::min() && right == -1;
      if (!overflow) value = symbol == "/" ? left / right : left % right;
    }
    return overflow ? fail_if_wanted("an overflow of 64 bits", operation.position) : value;
  }

  std::int64_t unary() {
    if (token_.kind != TokenKind::symbol) return primary();
    if (++depth_ > kDeepest)
      return fail(fmt::format("nesting deeper than {}", kDeepest), token_.position);
    const std::size_t position = token_.position;
    std::int64_t value = 0;
    if (accept("-")) {
      const std::int64_t operand = unary();
      if (__builtin_sub_overflow(std::int64_t{0}, operand, &value))
        value = fail_if_wanted("an overflow of 64 bits", position);
    } else if (accept("+")) {
      value = unary();
    } else if (accept("!")) {
      value = unary() == 0;
    } else if (accept("~")) {
      value = ~unary();
    } else {
      value = primary();
    }
    --depth_;
    return value;
  }

  std::int64_t primary() {
    const Token token = token_;
    if (token.kind == TokenKind::end)
      return fail("expected a value but found the end", token.position);
    advance();
    if (token.kind == TokenKind::number) {
      if (const auto value = parse_number(token.text)) return *value;
      return fail(fmt::format("'{}' is no 64-bit integer", token.text), token.position);
    }
    if (token.kind == TokenKind::name) return named(token);
    if (token.text != "(") return fail(fmt::format("unexpected '{}'", token.text), token.position);
    const std::int64_t value = ternary();
    expect(")");
    return value;
  }

  std::int64_t named(const Token& token) {
    if (token.text == "true") return 1;
    if (token.text == "false") return 0;
    if (is_function(token.text)) return extreme(token);
    const auto found = names_.find(std::string(token.text));
    if (found != names_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, value] : names_) known.push_back(name);
    const auto close = closest_word(token.text, known);
    return fail(
        fmt::format("unknown name '{}'", token.text), token.position,
        close ? fmt::format("did you mean '{}'?", *close) : "use one of the declared names");
  }

  std::int64_t extreme(const Token& function) {
    expect("(");
    std::int64_t value = ternary();
    if (!error_ && !(token_.kind == TokenKind::symbol && token_.text == ","))
      return fail(fmt::format("{} takes two values or more", function.text), function.position);
    while (accept(",")) {
      const std::int64_t next = ternary();
      value = function.text.ends_with("min") ? std::min(value, next) : std::max(value, next);
    }
    expect(")");
    return value;
  }

  std::string_view text_;
  const std::map<std::string, std::int64_t>& names_;
  Lexer lexer_;
  Token token_;
  std::optional<Error> error_;
  int skipping_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::int64_t> evaluate_expression(std::string_view text,
                                         const std::map<std::string, std::int64_t>& names) {
  return Evaluator(text, names).run();
}

std::vector<std::string> names_in_expression(std::string_view text) {
  std::vector<std::string> names;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
    const bool reserved = token.text == "true" || token.text == "false" || is_function(token.text);
    if (token.kind != TokenKind::name || reserved) continue;
    if (std::find(names.begin(), names.end(), token.text) == names.end())
      names.emplace_back(token.text);
  }
  return names;
}

}  // namespace kbeam
