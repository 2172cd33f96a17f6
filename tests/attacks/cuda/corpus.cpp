#include "attacks/cuda/corpus.h"

#include <nlohmann/json.hpp>

#include "base/files.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

Json form(const Trial& trial) {
  return {{"task", trial.task}, {"verdict", trial.found.verdict}, {"reason", trial.found.reason}};
}

Trial trial_from(const Json& json) {
  return {json.value("task", ""), {json.value("verdict", ""), json.value("reason", "")}};
}

Json form(const PreparedAttack& attack) {
  return {{"name", attack.name},
          {"text", attack.text},
          {"expect", attack.expect},
          {"says", attack.says},
          {"defences", attack.defences},
          {"unprovable", attack.unprovable},
          {"success", attack.success},
          {"is_gain", attack.is_gain},
          {"by_best", attack.by_best},
          {"hangs", attack.hangs},
          {"trial", form(attack.trial)},
          {"without", form(attack.without)},
          {"needs_weak_worker", attack.needs_weak_worker}};
}

PreparedAttack attack_from(const Json& json) {
  PreparedAttack attack;
  attack.name = json.value("name", "");
  attack.text = json.value("text", "");
  attack.expect = json.value("expect", std::vector<std::string>());
  attack.says = json.value("says", "");
  attack.defences = json.value("defences", std::vector<std::string>());
  attack.unprovable = json.value("unprovable", "");
  attack.success = json.value("success", "");
  attack.is_gain = json.value("is_gain", false);
  attack.by_best = json.value("by_best", false);
  attack.hangs = json.value("hangs", false);
  attack.trial = trial_from(json.at("trial"));
  attack.without = trial_from(json.at("without"));
  attack.needs_weak_worker = json.value("needs_weak_worker", false);
  return attack;
}

}  // namespace

Result<void> write_corpus(const Corpus& corpus, const fs::path& folder) {
  Json json{{"attacks", Json::array()}, {"honest", Json::array()}};
  for (const PreparedAttack& attack : corpus.attacks) json["attacks"].push_back(form(attack));
  for (const PreparedHonest& one : corpus.honest)
    json["honest"].push_back({{"name", one.name}, {"trial", form(one.trial)}});
  return write_file(folder / kCorpusFile,
                    json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<Corpus> read_corpus(const fs::path& folder) {
  ASSIGN_OR_RETURN(const std::string text, read_file(folder / kCorpusFile));
  Corpus corpus;
  try {
    const Json json = Json::parse(text);
    for (const Json& attack : json.at("attacks")) corpus.attacks.push_back(attack_from(attack));
    for (const Json& one : json.at("honest"))
      corpus.honest.push_back({one.at("name").get<std::string>(), trial_from(one.at("trial"))});
  } catch (const std::exception& trouble) {
    return Error{ErrorCode::corrupt, "read " + (folder / kCorpusFile).string(), trouble.what(),
                 "prepare the folder again"};
  }
  return corpus;
}

}  // namespace kbeam::device_attacks
