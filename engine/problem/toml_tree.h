// A TOML document as a plain tree with positions, keys in the order of the file. Keeps the TOML
// library, which is slow to compile, in one translation unit. Knows no schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kbeam {

struct TomlPosition {
  int line = 0;  // 1-based
  int column = 0;
};

struct TomlEntry;

struct TomlNode {
  enum class Kind { string, integer, floating, boolean, date, array, table };
  Kind kind = Kind::table;
  TomlPosition position;
  std::string text;  // of a string
  std::int64_t integer = 0;
  bool truth = false;
  std::vector<TomlNode> items;     // of an array
  std::vector<TomlEntry> entries;  // of a table

  const TomlEntry* find(std::string_view key) const;
};

struct TomlEntry {
  std::string key;
  TomlPosition position;  // of the key
  TomlNode value;
};

struct TomlSyntaxError {
  TomlPosition position;
  std::string sentence;
};

std::variant<TomlNode, TomlSyntaxError> parse_toml(std::string_view text);

std::string_view describe(TomlNode::Kind kind);  // "a string"

}  // namespace kbeam
