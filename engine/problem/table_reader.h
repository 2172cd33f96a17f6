// Typed reading of one TOML table: collects every mistake instead of stopping at the first, and
// knows which keys were asked for, so that the others are reported as unknown.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/problem_file.h"
#include "problem/toml_tree.h"

namespace kbeam {

class MistakeList {
 public:
  explicit MistakeList(std::filesystem::path file) : file_(std::move(file)) {}
  void add(TomlPosition where, std::string sentence) {
    all_.push_back({file_, where.line, where.column, std::move(sentence)});
  }
  void add_about_file(const std::filesystem::path& file, std::string sentence) {
    all_.push_back({file, 0, 0, std::move(sentence)});
  }
  // In the order of the file.
  std::vector<InputMistake> take();

 private:
  std::filesystem::path file_;
  std::vector<InputMistake> all_;
};

enum class Need { required, optional };

struct LocatedText {
  std::string text;
  TomlPosition position;
};

class TableReader {
 public:
  // `label` names the table in messages: "[[case]]".
  TableReader(const TomlNode& table, std::string label, MistakeList& mistakes)
      : table_(table), label_(std::move(label)), mistakes_(mistakes) {}

  TomlPosition position() const { return table_.position; }

  const TomlNode* node(std::string_view key, TomlNode::Kind kind, Need need);
  std::optional<LocatedText> text(std::string_view key, Need need);  // not blank
  std::optional<LocatedText> identifier(std::string_view key, Need need);
  std::vector<LocatedText> texts(std::string_view key, Need need);  // an array of strings
  std::vector<const TomlNode*> tables(std::string_view key, Need need);

  // Reports every key that nobody asked for.
  void refuse_other_keys() const;

 private:
  const TomlNode& table_;
  std::string label_;
  MistakeList& mistakes_;
  std::vector<std::string> asked_;
};

bool is_identifier(std::string_view text);
// "; did you mean 'dense'?" or, when nothing is close, "; known: dense, upper".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace kbeam
