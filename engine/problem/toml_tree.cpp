#include "problem/toml_tree.h"

#include <toml++/toml.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kbeam {
namespace {

TomlPosition position_of(const toml::source_region& source) {
  return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

TomlNode converted(const toml::node& node);

void convert_table(const toml::table& table, TomlNode& into) {
  for (const auto& [key, value] : table)
    into.entries.push_back({std::string(key.str()), position_of(key.source()), converted(value)});
  // The library sorts by key; people expect the order of the file.
  const auto order = [](const TomlEntry& entry) {
    return std::tuple(entry.position.line, entry.position.column);
  };
  std::stable_sort(into.entries.begin(), into.entries.end(),
                   [&](const TomlEntry& a, const TomlEntry& b) { return order(a) < order(b); });
}

TomlNode converted(const toml::node& node) {
  using Kind = TomlNode::Kind;
  TomlNode result;
  result.position = position_of(node.source());
  if (const auto* text = node.as_string()) {
    result.kind = Kind::string;
    result.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    result.kind = Kind::integer;
    result.integer = integer->get();
  } else if (const auto* truth = node.as_boolean()) {
    result.kind = Kind::boolean;
    result.truth = truth->get();
  } else if (node.is_floating_point()) {
    result.kind = Kind::floating;
  } else if (const auto* array = node.as_array()) {
    result.kind = Kind::array;
    for (const toml::node& item : *array) result.items.push_back(converted(item));
  } else if (const auto* table = node.as_table()) {
    result.kind = Kind::table;
    convert_table(*table, result);
  } else {
    result.kind = Kind::date;
  }
  return result;
}

}  // namespace

const TomlEntry* TomlNode::find(std::string_view key) const {
  for (const TomlEntry& entry : entries)
    if (entry.key == key) return &entry;
  return nullptr;
}

std::variant<TomlNode, TomlSyntaxError> parse_toml(std::string_view text) {
  try {
    return converted(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return TomlSyntaxError{position_of(error.source()), std::string(error.description())};
  }
}

std::string_view describe(TomlNode::Kind kind) {
  switch (kind) {
    case TomlNode::Kind::string:
      return "a string";
    case TomlNode::Kind::integer:
      return "an integer";
    case TomlNode::Kind::floating:
      return "a float";
    case TomlNode::Kind::boolean:
      return "true or false";
    case TomlNode::Kind::date:
      return "a date";
    case TomlNode::Kind::array:
      return "an array";
    case TomlNode::Kind::table:
      return "a table";
  }
  return "a value";
}

}  // namespace kbeam
