// Worlds that a search is let loose on: sketches that a simulated proposer brings, and how fast
// each setting truly is. Some are made up, some replay recorded campaigns. Knows no search.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "search/search.h"

namespace kbeam {

// What a setting truly is; a screen sees it through noise.
struct Truth {
  Verdict verdict = Verdict::accepted;
  std::map<std::string, double> speedup;  // by case; a case that is not supported is absent
};

struct Arrival {
  int at = 0;  // after so many evaluations; 0: there from the start
  Sketch sketch;
};

struct World {
  std::vector<std::string> cases;
  std::vector<Arrival> arrivals;  // in the order of their time
  std::function<Truth(const Candidate&)> truth;
  std::map<std::string, double> optimum;  // by case, over all that ever arrives
};

struct Landscape {
  std::string name;
  std::string text;      // one sentence
  std::string expected;  // who should win, said before the run: "greedy", "beam", "nobody"
  int short_budget = 0;  // evaluations, screens and confirmations alike
  int long_budget = 0;
  std::function<World(std::uint64_t seed)> make;
};

// `recorded` holds the campaigns to replay (written by record_campaigns).
Result<std::vector<Landscape>> make_landscapes(const std::filesystem::path& recorded);

}  // namespace kbeam
