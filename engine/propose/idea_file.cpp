#include "propose/idea_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "base/spelling.h"

namespace kbeam {
namespace {

const std::vector<std::string> kKeys = {"family",   "category", "text",
                                        "expected", "sketch",   "parents"};

std::string suggestion(std::string_view word, const std::vector<std::string>& words) {
  const auto close = closest_word(word, words);
  return close ? fmt::format("; did you mean '{}'?", *close) : "";
}

bool is_family_name(const std::string& name) {
  return std::all_of(
             name.begin(), name.end(),
             [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; }) &&
         !name.empty() && std::islower(static_cast<unsigned char>(name.front()));
}

std::string idea_id(const Idea& idea) {
  return Hasher()
      .field("idea")
      .field(idea.family)
      .field(idea.category)
      .field(idea.text)
      .hex()
      .substr(0, 12);
}

class IdeaFileReader {
 public:
  explicit IdeaFileReader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  LoadedIdeas read(const std::string& text) {
    try {
      read_document(toml::parse(text));
    } catch (const toml::parse_error& error) {
      add_mistake(error.source(), fmt::format("no valid TOML: {}", error.description()));
    }
    std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const Mistake& a, const Mistake& b) {
      return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    for (const Mistake& mistake : mistakes_)
      loaded_.mistakes.push_back(
          fmt::format("ideas.toml:{}:{}: {}", mistake.line, mistake.column, mistake.sentence));
    return std::move(loaded_);
  }

 private:
  struct Mistake {
    int line = 0;
    int column = 0;
    std::string sentence;
  };

  void add_mistake(const toml::source_region& where, std::string sentence) {
    mistakes_.push_back({static_cast<int>(where.begin.line), static_cast<int>(where.begin.column),
                         std::move(sentence)});
  }

  void read_document(const toml::table& document) {
    for (const auto& [key, node] : document) {
      if (key.str() == "idea") continue;
      add_mistake(key.source(),
                  fmt::format("unknown key '{}'{}", key.str(), suggestion(key.str(), {"idea"})));
    }
    const toml::node* ideas = document.get("idea");
    if (!ideas) {
      if (mistakes_.empty())
        mistakes_.push_back({1, 1, "no [[idea]]: the builtin proposer needs one at least"});
      return;
    }
    const toml::array* list = ideas->as_array();
    if (!list || !list->is_array_of_tables())
      return add_mistake(ideas->source(), "ideas are written as [[idea]], with two brackets");
    for (const toml::node& node : *list) note_family(*node.as_table());
    for (const toml::node& node : *list) read_idea(*node.as_table());
  }

  void note_family(const toml::table& table) {
    if (const auto family = table["family"].value<std::string>()) all_families_.push_back(*family);
  }

  void read_idea(const toml::table& table) {
    const std::size_t mistakes_before = mistakes_.size();
    for (const auto& [key, node] : table)
      if (std::find(kKeys.begin(), kKeys.end(), key.str()) == kKeys.end())
        add_mistake(key.source(),
                    fmt::format("unknown key '{}'{}", key.str(), suggestion(key.str(), kKeys)));
    SketchFile file;
    file.idea.source = "builtin";
    file.idea.family = read_text(table, "family");
    file.idea.category = read_text(table, "category");
    file.idea.text = read_text(table, "text");
    file.idea.expected = read_text(table, "expected");
    const std::string sketch = read_text(table, "sketch");
    check_family(table, file.idea.family);
    read_parents(table, file.idea);
    if (!sketch.empty()) read_sketch(*table.get("sketch"), sketch, file);
    file.idea.id = idea_id(file.idea);
    check_repetition(table, file.idea);
    ids_of_family_[file.idea.family].push_back(file.idea.id);
    if (mistakes_.size() == mistakes_before) loaded_.sketches.push_back(std::move(file));
  }

  // Empty when it is not there, with the mistake noted.
  std::string read_text(const toml::table& table, std::string_view key) {
    const toml::node* node = table.get(key);
    if (!node) {
      add_mistake(table.source(), fmt::format("this [[idea]] has no '{}'", key));
      return "";
    }
    const auto text = node->value_exact<std::string>();
    if (!text) add_mistake(node->source(), fmt::format("'{}' must be a string", key));
    if (text && text->find_first_not_of(" \t\n") == std::string::npos) {
      add_mistake(node->source(), fmt::format("'{}' is empty", key));
      return "";
    }
    return text.value_or("");
  }

  void check_family(const toml::table& table, const std::string& family) {
    if (family.empty()) return;
    const toml::source_region& where = table.get("family")->source();
    if (!is_family_name(family))
      add_mistake(
          where,
          fmt::format("the family '{}' must be lower-case letters, digits and '_', a letter first",
                      family));
    if (family == "portfolio")
      add_mistake(where, "the family name 'portfolio' is taken by the engine");
  }

  // Parents come first in the file, so that no idea is its own ancestor.
  void read_parents(const toml::table& table, Idea& idea) {
    const toml::node* node = table.get("parents");
    if (!node) return;
    const toml::array* names = node->as_array();
    if (!names) return add_mistake(node->source(), "'parents' must be a list of family names");
    for (const toml::node& name_node : *names) {
      const auto name = name_node.value_exact<std::string>();
      if (!name) {
        add_mistake(name_node.source(), "'parents' must be a list of family names");
        continue;
      }
      const auto known = ids_of_family_.find(*name);
      if (known != ids_of_family_.end()) {
        idea.parents.insert(idea.parents.end(), known->second.begin(), known->second.end());
      } else if (std::find(all_families_.begin(), all_families_.end(), *name) !=
                 all_families_.end()) {
        add_mistake(
            name_node.source(),
            fmt::format("the parent '{}' must come earlier in the file than its child", *name));
      } else {
        add_mistake(name_node.source(),
                    fmt::format("no family '{}'{}", *name, suggestion(*name, all_families_)));
      }
    }
  }

  void read_sketch(const toml::node& node, const std::string& sketch, SketchFile& file) {
    const std::filesystem::path relative = std::filesystem::path(sketch).lexically_normal();
    if (relative.is_absolute() || relative.begin() == relative.end() || *relative.begin() == "..")
      return add_mistake(node.source(),
                         fmt::format("the sketch '{}' must lie inside the problem folder", sketch));
    if (!sketch_paths_.insert(relative).second)
      return add_mistake(node.source(),
                         fmt::format("the sketch '{}' belongs to an idea above", sketch));
    file.path = folder_ / relative;
    if (!std::filesystem::is_regular_file(file.path))
      return add_mistake(node.source(), fmt::format("no file '{}' in {}{}", sketch,
                                                    folder_.string(), similar_file(relative)));
    auto source = read_file(file.path);
    if (!source.ok()) return add_mistake(node.source(), source.error().text());
    file.source = *std::move(source);
  }

  std::string similar_file(const std::filesystem::path& relative) const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_ / relative.parent_path(), ignored))
      names.push_back((relative.parent_path() / entry.path().filename()).string());
    std::sort(names.begin(), names.end());
    return suggestion(relative.string(), names);
  }

  void check_repetition(const toml::table& table, const Idea& idea) {
    if (idea.text.empty()) return;
    if (!texts_.insert(idea.text).second)
      add_mistake(table.get("text")->source(),
                  "an idea above has the same text: what differs structurally?");
  }

  std::filesystem::path folder_;
  LoadedIdeas loaded_;
  std::vector<Mistake> mistakes_;
  std::vector<std::string> all_families_;
  std::map<std::string, std::vector<std::string>> ids_of_family_;  // of the ideas read so far
  std::set<std::filesystem::path> sketch_paths_;
  std::set<std::string> texts_;
};

}  // namespace

Result<LoadedIdeas> load_ideas(const std::filesystem::path& problem_folder) {
  const std::filesystem::path file = problem_folder / "ideas.toml";
  if (!std::filesystem::exists(file))
    return Error{ErrorCode::not_found, "read the ideas of " + problem_folder.string(),
                 "there is no ideas.toml",
                 "write one with an [[idea]] a family, or submit candidates with kbeam submit"};
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  return IdeaFileReader(problem_folder).read(text);
}

}  // namespace kbeam
