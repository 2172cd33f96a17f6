// attacks.toml as data: attacks, honest candidates and mutants of the checker. Judges nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam::attacks {

enum class How { check, screen, compare, promote };

struct Limits {
  double build_timeout_s = 60;
  std::int64_t build_memory_bytes = 4LL << 30;
  std::int64_t build_output_bytes = 64LL << 20;
  double call_timeout_s = 10;
  bool operator==(const Limits&) const = default;
};

struct Attack {
  std::string name;  // of cpu/NAME.cpp
  std::string text;
  How stage = How::check;
  std::vector<std::string> expect;  // one of these verdicts
  std::string says;                 // and these words in the reason
  std::string defence;              // what must fire: a Defence, or the name of a mutant
  std::string twin;                 // honest/TWIN.cpp; empty: the same text with kCheat = 0
  std::map<std::string, std::string> knobs;
  Limits limits;
  // What is a success of the attack when its defence is off.
  std::string success = "accepted";
  std::string success_says;
};

struct Honest {
  std::string name;  // of honest/NAME.cpp
  std::string text;
  How stage = How::compare;
};

// A change of the checker that must be noticed, because an attack gets through: a line of
// problem.cpp, or a defence of the engine that is off.
struct Mutant {
  std::string name;
  std::string text;
  std::string find;
  std::string replace;
};

struct Manifest {
  std::vector<Attack> attacks;
  std::vector<Honest> honest;
  std::vector<Mutant> mutants;
  const Mutant* find_mutant(const std::string& name) const;
  // Leaves out every attack and honest candidate that is not named. No names: leaves all.
  void keep_only(const std::vector<std::string>& names);
};

// Refuses an unknown key, a name that comes twice, and a file below `folder` that no entry names.
Result<Manifest> load_manifest(const std::filesystem::path& folder);

}  // namespace kbeam::attacks
