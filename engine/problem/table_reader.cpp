#include "problem/table_reader.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "base/spelling.h"

namespace kbeam {
namespace {

constexpr std::size_t kLongestIdentifier = 64;

bool is_blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isspace(c) != 0; });
}

std::string in_quotes(std::string_view key) {
  std::string text(1, '\'');
  text += key;
  text += '\'';
  return text;
}

}  // namespace

std::vector<InputMistake> MistakeList::take() {
  std::stable_sort(all_.begin(), all_.end(), [](const InputMistake& a, const InputMistake& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return std::move(all_);
}

const TomlNode* TableReader::node(std::string_view key, TomlNode::Kind kind, Need need) {
  asked_.emplace_back(key);
  const TomlEntry* entry = table_.find(key);
  if (entry == nullptr) {
    if (need == Need::required)
      mistakes_.add(table_.position,
                    label_ + " lacks " + in_quotes(key) + ", " + std::string(describe(kind)));
    return nullptr;
  }
  if (entry->value.kind != kind) {
    mistakes_.add(entry->value.position, in_quotes(key) + " must be " +
                                             std::string(describe(kind)) + ", not " +
                                             std::string(describe(entry->value.kind)));
    return nullptr;
  }
  return &entry->value;
}

std::optional<LocatedText> TableReader::text(std::string_view key, Need need) {
  const TomlNode* found = node(key, TomlNode::Kind::string, need);
  if (found == nullptr) return std::nullopt;
  if (is_blank(found->text)) {
    mistakes_.add(found->position, in_quotes(key) + " is empty");
    return std::nullopt;
  }
  return LocatedText{found->text, found->position};
}

std::optional<LocatedText> TableReader::identifier(std::string_view key, Need need) {
  std::optional<LocatedText> found = text(key, need);
  if (found && !is_identifier(found->text)) {
    mistakes_.add(
        found->position,
        in_quotes(key) +
            " must be letters, digits and underscores, not begin with a digit, and have at most " +
            std::to_string(kLongestIdentifier) + " characters; found '" + found->text + "'");
    return std::nullopt;
  }
  return found;
}

std::vector<LocatedText> TableReader::texts(std::string_view key, Need need) {
  std::vector<LocatedText> result;
  const TomlNode* array = node(key, TomlNode::Kind::array, need);
  if (array == nullptr) return result;
  for (const TomlNode& item : array->items) {
    if (item.kind == TomlNode::Kind::string)
      result.push_back({item.text, item.position});
    else
      mistakes_.add(item.position,
                    in_quotes(key) + " must hold strings, not " + std::string(describe(item.kind)));
  }
  return result;
}

std::vector<const TomlNode*> TableReader::tables(std::string_view key, Need need) {
  asked_.emplace_back(key);
  std::vector<const TomlNode*> result;
  const TomlEntry* entry = table_.find(key);
  const std::string heading = "[[" + std::string(key) + "]]";
  if (entry == nullptr) {
    if (need == Need::required) mistakes_.add({}, "at least one " + heading + " is needed");
    return result;
  }
  if (entry->value.kind != TomlNode::Kind::array) {
    mistakes_.add(entry->position,
                  in_quotes(key) + " may be given more than once: write " + heading);
    return result;
  }
  for (const TomlNode& item : entry->value.items) {
    if (item.kind == TomlNode::Kind::table)
      result.push_back(&item);
    else
      mistakes_.add(item.position, in_quotes(key) + " must hold tables: write " + heading);
  }
  if (entry->value.items.empty() && need == Need::required)
    mistakes_.add(entry->position, "at least one " + heading + " is needed");
  return result;
}

void TableReader::refuse_other_keys() const {
  for (const TomlEntry& entry : table_.entries)
    if (std::find(asked_.begin(), asked_.end(), entry.key) == asked_.end())
      mistakes_.add(entry.position, "unknown key " + in_quotes(entry.key) + " in " + label_ +
                                        suggestion(entry.key, asked_));
}

bool is_identifier(std::string_view text) {
  const auto is_letter = [](unsigned char c) {
    return c < 128 && (std::isalpha(c) != 0 || c == '_');
  };
  const auto is_digit = [](unsigned char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && text.size() <= kLongestIdentifier && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](unsigned char c) { return is_letter(c) || is_digit(c); });
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (const auto closest = closest_word(word, known))
    return "; did you mean " + in_quotes(*closest) + "?";
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return list.empty() ? "; none is declared" : "; known: " + list;
}

}  // namespace kbeam
