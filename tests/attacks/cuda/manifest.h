// attacks.toml of the device corpus as data: attacks, honest candidates and mutants of the check.
// Judges nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam::device_attacks {

// How far a candidate gets before it is judged.
enum class How {
  plan,     // built and planned: no GPU
  check,    // every untimed case once
  compare,  // the same, then pairs on the timed case
  gain      // pairs on the timed case against an honest reference: is it faster than it may be?
};

struct Attack {
  std::string name;  // of device/NAME.cu
  std::string text;
  How stage = How::check;
  std::vector<std::string> expect;  // one of these verdicts
  std::string says;                 // and these words in the reason
  // What must fire: a Defence, or the name of a mutant. Several Defences: each stops it alone.
  std::vector<std::string> defences;
  std::string unprovable;  // instead: why it fails whatever the engine does
  std::string twin;        // honest/TWIN.cu; empty: the same text with deed = 1
  std::string reference;   // references/NAME.cu, for a gain
  bool by_best = false;    // a gain: of the fastest calls, not of the median
  int pairs = 8;
  double call_timeout_s = 10;
  double plan_timeout_s = 10;
  double plan_memory_bytes = 2e9;
  std::string success = "accepted";  // when its defences are off
};

struct Honest {
  std::string name;  // of honest/NAME.cu
  std::string text;
  How stage = How::check;
};

// A line of problem.cu changed: a check that must be noticed to be weaker.
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
  // Leaves out what is not named. No names: leaves all.
  void keep_only(const std::vector<std::string>& names);
};

// Refuses an unknown key, a name that comes twice, and a file that no entry names.
Result<Manifest> load_manifest(const std::filesystem::path& folder);

}  // namespace kbeam::device_attacks
