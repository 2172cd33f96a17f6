#include "build/source_scan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "build/cpp_tokens.h"
#include "build/knob_value.h"

namespace kbeam {
namespace {

using Kind = CppToken::Kind;
using Tokens = std::span<const CppToken>;

// As written, but with one space where there was layout: "kPanel % kWidth == 0".
std::string as_written(Tokens tokens) {
  std::string text;
  for (const CppToken& token : tokens) {
    if (!text.empty() && token.space_before) text += ' ';
    text += token.text;
  }
  return text;
}

std::string without_separators(std::string text) {
  std::erase(text, '\'');
  return text;
}

int change_of_depth(const CppToken& token) {
  if (token.is("(") || token.is("[") || token.is("{")) return 1;
  if (token.is(")") || token.is("]") || token.is("}")) return -1;
  return 0;
}

// The tokens between the parenthesis at `open` and its partner, or nothing when there is no
// partner.
std::optional<Tokens> inside_parentheses(Tokens tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    depth += change_of_depth(tokens[i]);
    if (depth == 0) return tokens.subspan(open + 1, i - open - 1);
    if (tokens[i].kind == Kind::directive) return std::nullopt;
  }
  return std::nullopt;
}

// The token after the `>` that closes the template argument list at `open`, or `open` when it
// closes none.
std::size_t after_template_list(Tokens tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    if (tokens[i].is("<")) ++depth;
    if (tokens[i].is(">")) --depth;
    if (tokens[i].is(">>")) depth -= 2;
    if (depth <= 0) return i + 1;
    if (tokens[i].is("&&") || tokens[i].is("||")) break;
  }
  return open;
}

std::vector<Tokens> split_at_commas(Tokens tokens) {
  std::vector<Tokens> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    depth += change_of_depth(tokens[i]);
    const bool opens_list =
        i > begin && tokens[i].is("<") && tokens[i - 1].kind == Kind::identifier;
    if (opens_list) {
      if (const std::size_t after = after_template_list(tokens, i); after > i) i = after - 1;
      continue;
    }
    if (depth != 0 || !tokens[i].is(",")) continue;
    parts.push_back(tokens.subspan(begin, i - begin));
    begin = i + 1;
  }
  if (begin < tokens.size()) parts.push_back(tokens.subspan(begin));
  return parts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

class Scanner {
 public:
  explicit Scanner(const std::vector<CppToken>& tokens) : tokens_(tokens) {}

  SourceKnobs run() {
    bool in_directive = false;
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind == Kind::directive) in_directive = true;
      if (tokens_[i].kind == Kind::directive_end) in_directive = false;
      if (in_directive || tokens_[i].kind != Kind::identifier || !tokens_[i + 1].is("(")) continue;
      const bool is_knob = tokens_[i].text == "KBEAM_KNOB";
      if (!is_knob && tokens_[i].text != "KBEAM_REQUIRE") continue;
      line_ = tokens_[i].line;
      const auto inside = inside_parentheses(tokens_, i + 1);
      if (!inside)
        mistake("the parenthesis of " + tokens_[i].text + " is never closed");
      else if (is_knob)
        read_knob(*inside);
      else
        read_constraint(*inside);
    }
    return std::move(result_);
  }

 private:
  void mistake(const std::string& sentence) {
    result_.mistakes.push_back("line " + std::to_string(line_) + ": " + sentence);
  }

  void read_knob(Tokens inside) {
    const std::vector<Tokens> parts = split_at_commas(inside);
    if (parts.size() < 4 || parts[1].size() != 1 || parts[1][0].kind != Kind::identifier)
      return mistake(
          "KBEAM_KNOB needs a type, a name, a default and the choices: KBEAM_KNOB(int, kPanel, 32, "
          "16, 32)");
    Knob knob{.name = parts[1][0].text,
              .type = as_written(parts[0]),
              .fallback = without_separators(as_written(parts[2]))};
    for (const Tokens part : std::span(parts).subspan(3))
      add_choice(knob, without_separators(as_written(part)));
    if (std::count(knob.choices.begin(), knob.choices.end(), knob.fallback) == 0)
      mistake("the default " + knob.fallback + " of " + knob.name + " is not among its choices " +
              joined(knob.choices));
    const auto has_same_name = [&](const Knob& other) { return other.name == knob.name; };
    if (std::any_of(result_.knobs.begin(), result_.knobs.end(), has_same_name))
      return mistake("the knob " + knob.name + " is declared twice");
    result_.knobs.push_back(std::move(knob));
  }

  void add_choice(Knob& knob, std::string choice) {
    if (!is_knob_value(choice))
      mistake("the choice " + choice + " of " + knob.name + " is no number, name, true or false");
    else if (std::count(knob.choices.begin(), knob.choices.end(), choice) > 0)
      mistake("the choice " + choice + " of " + knob.name + " is listed twice");
    else
      knob.choices.push_back(std::move(choice));
  }

  void read_constraint(Tokens inside) {
    std::size_t sentence_begin = inside.size();
    while (sentence_begin > 0 && inside[sentence_begin - 1].kind == Kind::string) --sentence_begin;
    const bool complete =
        sentence_begin >= 2 && sentence_begin < inside.size() && inside[sentence_begin - 1].is(",");
    if (!complete)
      return mistake(
          "KBEAM_REQUIRE needs a condition and a sentence: KBEAM_REQUIRE(kPanel % 8 == 0, \"whole "
          "vectors\")");
    KnobConstraint constraint{.condition = as_written(inside.first(sentence_begin - 1))};
    for (const CppToken& part : inside.subspan(sentence_begin)) constraint.sentence += part.content;
    result_.constraints.push_back(std::move(constraint));
  }

  const std::vector<CppToken>& tokens_;
  SourceKnobs result_;
  int line_ = 0;
};

}  // namespace

SourceKnobs scan_knobs(std::string_view source) {
  const std::vector<CppToken> tokens = cpp_tokens(source);
  return Scanner(tokens).run();
}

std::string normalised_source(std::string_view source) {
  std::string text;
  const auto new_line = [&] {
    if (!text.empty() && text.back() != '\n') text += '\n';
  };
  for (const CppToken& token : cpp_tokens(source)) {
    if (token.kind == Kind::directive) {
      new_line();
      text += '#';
    } else if (token.kind == Kind::directive_end) {
      new_line();
      continue;
    } else if (!text.empty() && text.back() != '\n') {
      text += ' ';
    }
    text += token.kind == Kind::number ? without_separators(token.text) : token.text;
  }
  return text;
}

}  // namespace kbeam
