#include "attacks/manifest.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace kbeam::attacks {
namespace {

namespace fs = std::filesystem;

// One table of the manifest. Every key that is read is remembered, so that a misspelt one is
// refused.
class Entry {
 public:
  Entry(const toml::table& table, std::string kind) : table_(table), kind_(std::move(kind)) {}

  std::string text(std::string_view key) {
    const std::string value = text_or(key, "");
    if (value.empty()) complain(fmt::format("needs {}", key));
    return value;
  }
  std::string text_or(std::string_view key, std::string fallback) {
    known_.insert(std::string(key));
    return table_[key].value<std::string>().value_or(std::move(fallback));
  }
  double number_or(std::string_view key, double fallback) {
    known_.insert(std::string(key));
    return table_[key].value<double>().value_or(fallback);
  }
  std::vector<std::string> words(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<std::string> found;
    if (const toml::array* list = table_[key].as_array())
      for (const auto& word : *list) found.push_back(word.value<std::string>().value_or(""));
    if (found.empty()) complain(fmt::format("needs the list {}", key));
    return found;
  }
  std::map<std::string, std::string> pairs(std::string_view key) {
    known_.insert(std::string(key));
    std::map<std::string, std::string> found;
    if (const toml::table* inner = table_[key].as_table())
      for (const auto& [name, value] : *inner)
        found[std::string(name.str())] = value.value<std::string>().value_or("");
    return found;
  }
  void complain(const std::string& what) {
    mistakes_.push_back(
        fmt::format("line {}: this {} {}", table_.source().begin.line, kind_, what));
  }
  std::vector<std::string> mistakes() {
    for (const auto& [key, value] : table_)
      if (known_.count(std::string(key.str())) == 0)
        complain(fmt::format("has the unknown key {}", key.str()));
    return mistakes_;
  }

 private:
  const toml::table& table_;
  std::string kind_;
  std::set<std::string> known_;
  std::vector<std::string> mistakes_;
};

std::optional<How> parse_stage(const std::string& word) {
  if (word == "check") return How::check;
  if (word == "screen") return How::screen;
  if (word == "compare") return How::compare;
  if (word == "promote") return How::promote;
  return std::nullopt;
}

How read_stage(Entry& entry, const std::string& otherwise) {
  const std::optional<How> stage = parse_stage(entry.text_or("stage", otherwise));
  if (!stage) entry.complain("has a stage that is none of check, screen, compare, promote");
  return stage.value_or(How::check);
}

Attack read_attack(Entry& entry) {
  Attack attack;
  attack.name = entry.text("name");
  attack.text = entry.text("text");
  attack.stage = read_stage(entry, "check");
  attack.expect = entry.words("expect");
  attack.says = entry.text("says");
  attack.defence = entry.text("defence");
  attack.twin = entry.text_or("twin", "");
  attack.knobs = entry.pairs("knobs");
  Limits& limits = attack.limits;
  limits.build_timeout_s = entry.number_or("build_timeout_s", limits.build_timeout_s);
  limits.build_memory_bytes = static_cast<std::int64_t>(
      entry.number_or("build_memory_bytes", static_cast<double>(limits.build_memory_bytes)));
  limits.build_output_bytes = static_cast<std::int64_t>(
      entry.number_or("build_output_bytes", static_cast<double>(limits.build_output_bytes)));
  limits.call_timeout_s = entry.number_or("call_timeout_s", limits.call_timeout_s);
  attack.success = entry.text_or("success", "accepted");
  attack.success_says = entry.text_or("success_says", "");
  return attack;
}

class Reader {
 public:
  explicit Reader(fs::path folder) : folder_(std::move(folder)) {}

  Result<Manifest> read() {
    const fs::path file = folder_ / "attacks.toml";
    toml::table root;
    try {
      root = toml::parse_file(file.string());
    } catch (const toml::parse_error& trouble) {
      return refuse({std::string(trouble.description())});
    }
    Manifest manifest;
    each(root, "attack", [&](Entry& entry) { manifest.attacks.push_back(read_attack(entry)); });
    each(root, "honest", [&](Entry& entry) {
      manifest.honest.push_back(
          {entry.text("name"), entry.text("text"), read_stage(entry, "compare")});
    });
    each(root, "mutant", [&](Entry& entry) {
      manifest.mutants.push_back({entry.text("name"), entry.text("text"), entry.text_or("find", ""),
                                  entry.text_or("replace", "")});
    });
    find_strays(manifest);
    if (!mistakes_.empty()) return refuse(mistakes_);
    return manifest;
  }

 private:
  template <typename Take>
  void each(const toml::table& root, std::string_view kind, Take take) {
    const toml::array* const list = root[kind].as_array();
    if (list == nullptr) return mistakes_.push_back(fmt::format("there is no [[{}]]", kind));
    for (const auto& node : *list) {
      const toml::table* const table = node.as_table();
      if (table == nullptr) continue;
      Entry entry(*table, std::string(kind));
      take(entry);
      for (std::string& mistake : entry.mistakes()) mistakes_.push_back(std::move(mistake));
    }
  }

  // A file that nobody runs protects nothing.
  void find_strays(const Manifest& manifest) {
    std::multiset<std::string> attacks;
    std::multiset<std::string> honest;
    for (const Attack& attack : manifest.attacks) attacks.insert(attack.name);
    for (const Honest& one : manifest.honest) honest.insert(one.name);
    compare(attacks, "cpu");
    compare(honest, "honest");
  }

  void compare(const std::multiset<std::string>& named, const char* subfolder) {
    for (const std::string& name : named) {
      if (named.count(name) > 1) mistakes_.push_back(name + " comes twice");
      if (!fs::exists(folder_ / subfolder / (name + ".cpp")))
        mistakes_.push_back(fmt::format("there is no {}/{}.cpp", subfolder, name));
    }
    for (const auto& entry : fs::directory_iterator(folder_ / subfolder))
      if (entry.path().extension() == ".cpp" && named.count(entry.path().stem().string()) == 0)
        mistakes_.push_back(entry.path().filename().string() + " is in no entry");
  }

  Error refuse(const std::vector<std::string>& mistakes) const {
    std::string all;
    for (const std::string& mistake : mistakes) all += (all.empty() ? "" : "; ") + mistake;
    return {ErrorCode::bad_input, "read " + (folder_ / "attacks.toml").string(), all,
            "tests/attacks/README.md explains every key"};
  }

  fs::path folder_;
  std::vector<std::string> mistakes_;
};

}  // namespace

const Mutant* Manifest::find_mutant(const std::string& name) const {
  const auto found = std::find_if(mutants.begin(), mutants.end(),
                                  [&](const Mutant& mutant) { return mutant.name == name; });
  return found == mutants.end() ? nullptr : &*found;
}

void Manifest::keep_only(const std::vector<std::string>& names) {
  if (names.empty()) return;
  const auto unnamed = [&](const auto& entry) {
    return std::find(names.begin(), names.end(), entry.name) == names.end();
  };
  std::erase_if(attacks, unnamed);
  std::erase_if(honest, unnamed);
}

Result<Manifest> load_manifest(const fs::path& folder) {
  return Reader(folder).read();
}

}  // namespace kbeam::attacks
