#include "attacks/cuda/manifest.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "attacks/cuda/corpus.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

// One table of the manifest. Every key that is read is remembered, so that a misspelt one is
// refused.
class Entry {
 public:
  Entry(const toml::table& table, std::string kind) : table_(table), kind_(std::move(kind)) {}

  std::string text(std::string_view key) {
    std::string value = text_or(key, "");
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
  std::vector<std::string> words_or_none(std::string_view key) {
    known_.insert(std::string(key));
    std::vector<std::string> found;
    if (const toml::array* list = table_[key].as_array())
      for (const auto& word : *list) found.push_back(word.value<std::string>().value_or(""));
    return found;
  }
  std::vector<std::string> words(std::string_view key) {
    std::vector<std::string> found = words_or_none(key);
    if (found.empty()) complain(fmt::format("needs the list {}", key));
    return found;
  }
  How stage_or(How fallback) {
    const std::string word = text_or("stage", "");
    if (word.empty()) return fallback;
    if (word == "plan") return How::plan;
    if (word == "check") return How::check;
    if (word == "compare") return How::compare;
    if (word == "gain") return How::gain;
    complain("has a stage that is none of plan, check, compare, gain");
    return fallback;
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

Attack read_attack(Entry& entry) {
  Attack attack;
  attack.name = entry.text("name");
  attack.text = entry.text("text");
  attack.stage = entry.stage_or(How::check);
  attack.expect = entry.words("expect");
  attack.says = entry.text_or("says", "");
  attack.defences = entry.words_or_none("defences");
  if (const std::string one = entry.text_or("defence", ""); !one.empty())
    attack.defences.push_back(one);
  attack.unprovable = entry.text_or("unprovable", "");
  if (attack.defences.empty() == attack.unprovable.empty())
    entry.complain("needs either a defence, or with unprovable the reason why it needs none");
  attack.twin = entry.text_or("twin", "");
  attack.reference = entry.text_or("reference", "");
  if ((attack.stage == How::gain) == attack.reference.empty())
    entry.complain("needs a reference if, and only if, it is a gain");
  const std::string gain_by = entry.text_or("gain_by", "median");
  if (gain_by != "median" && gain_by != "best")
    entry.complain("has a gain_by that is neither median nor best");
  attack.by_best = gain_by == "best";
  attack.pairs = static_cast<int>(entry.number_or("pairs", attack.pairs));
  attack.call_timeout_s = entry.number_or("call_timeout_s", attack.call_timeout_s);
  attack.plan_timeout_s = entry.number_or("plan_timeout_s", attack.plan_timeout_s);
  attack.plan_memory_bytes = entry.number_or("plan_memory_bytes", attack.plan_memory_bytes);
  attack.success = entry.text_or("success", attack.stage == How::gain ? kGainWord : "accepted");
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
          {entry.text("name"), entry.text("text"), entry.stage_or(How::check)});
    });
    each(root, "mutant", [&](Entry& entry) {
      manifest.mutants.push_back(
          {entry.text("name"), entry.text("text"), entry.text("find"), entry.text("replace")});
    });
    find_strays(manifest);
    if (!mistakes_.empty()) return refuse(mistakes_);
    return manifest;
  }

 private:
  template <typename Take>
  void each(const toml::table& root, std::string_view kind, const Take& take) {
    const toml::array* const list = root[kind].as_array();
    if (list == nullptr) return;
    for (const toml::node& node : *list) {
      const toml::table* const table = node.as_table();
      if (table == nullptr) continue;
      Entry entry(*table, std::string(kind));
      take(entry);
      for (std::string& mistake : entry.mistakes()) mistakes_.push_back(std::move(mistake));
    }
  }

  // A file that nobody runs protects nothing.
  void find_strays(const Manifest& manifest) {
    std::multiset<std::string> attacks, honest;
    std::set<std::string> references;
    for (const Attack& attack : manifest.attacks) {
      attacks.insert(attack.name);
      if (!attack.reference.empty()) references.insert(attack.reference);
    }
    for (const Honest& one : manifest.honest) honest.insert(one.name);
    compare(attacks, "device");
    compare(honest, "honest");
    compare({references.begin(), references.end()}, "references");
    for (const Attack& attack : manifest.attacks)
      if (!attack.twin.empty() && honest.count(attack.twin) == 0)
        mistakes_.push_back(attack.name + " has a twin that is no honest candidate");
  }

  void compare(const std::multiset<std::string>& named, const char* subfolder) {
    for (const std::string& name : named) {
      if (named.count(name) > 1) mistakes_.push_back(name + " comes twice");
      if (!fs::exists(folder_ / subfolder / (name + ".cu")))
        mistakes_.push_back(fmt::format("there is no {}/{}.cu", subfolder, name));
    }
    for (const auto& entry : fs::directory_iterator(folder_ / subfolder))
      if (entry.path().extension() == ".cu" && named.count(entry.path().stem().string()) == 0)
        mistakes_.push_back(entry.path().filename().string() + " is in no entry");
  }

  Error refuse(const std::vector<std::string>& mistakes) const {
    return {ErrorCode::bad_input, "read " + (folder_ / "attacks.toml").string(),
            fmt::format("{}", fmt::join(mistakes, "; ")),
            "tests/attacks/cuda/README.md explains every key"};
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

}  // namespace kbeam::device_attacks
