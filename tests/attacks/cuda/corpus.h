// What the half that prepares the device corpus tells the half that runs it: corpus.json and the
// task folders beside it. Plain data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kbeam::device_attacks {

// Words of a gain's outcome, beside the verdicts.
inline constexpr const char* kGainWord = "gain";
inline constexpr const char* kNoGainWord = "no_gain";

// How a candidate ended: a verdict, or a gain's word.
struct Finding {
  std::string verdict;  // empty: not known yet
  std::string reason;
};

// One evaluation. It is settled where it was prepared, or `task` names its folder.
struct Trial {
  std::string task;
  Finding found;
};

struct PreparedAttack {
  std::string name;
  std::string text;
  std::vector<std::string> expect;
  std::string says;
  std::vector<std::string> defences;
  std::string unprovable;
  std::string success;
  bool is_gain = false;
  bool by_best = false;
  bool hangs = false;  // without its defence it has no end of its own
  Trial trial;
  // With its defences off: a mutant's check is part of the task, every other defence is off in the
  // weak worker.
  Trial without;
  bool needs_weak_worker = false;
};

struct PreparedHonest {
  std::string name;
  Trial trial;
};

struct Corpus {
  std::vector<PreparedAttack> attacks;
  std::vector<PreparedHonest> honest;  // twins too
};

inline constexpr const char* kCorpusFile = "corpus.json";
inline constexpr const char* kTaskSubfolder = "tasks";

Result<void> write_corpus(const Corpus& corpus, const std::filesystem::path& folder);
Result<Corpus> read_corpus(const std::filesystem::path& folder);

}  // namespace kbeam::device_attacks
