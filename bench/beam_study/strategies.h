// The searches that the study compares: the beam as it ships, and what others do instead, each with
// the same inner tuner (SketchTuning), the same challenges and the same confirmations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"

namespace kbeam {

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual void add(Sketch sketch) = 0;  // after those of the opening
  virtual std::optional<Candidate> ask() = 0;
  virtual void tell(const Observation& observation) = 0;
  virtual std::vector<Search::Challenge> challenges() = 0;
  virtual void crown(const Champion& champion) = 0;
  virtual void refuse(const std::string& case_name, const std::string& candidate_id) = 0;
  virtual std::vector<Champion> champions() const = 0;
};

using MakeStrategy = std::unique_ptr<Strategy> (*)(const SearchConfig& config,
                                                   std::vector<Sketch> opening);

// engine/search as it ships.
std::unique_ptr<Strategy> make_beam(const SearchConfig& config, std::vector<Sketch> opening);
// Every sketch once; then always the sketch that is best at a case, cases in turn.
std::unique_ptr<Strategy> make_greedy(const SearchConfig& config, std::vector<Sketch> opening);
// Four populations with equal turns, each greedy among its own sketches; every tenth turn of an
// island its best setting migrates to the next.
std::unique_ptr<Strategy> make_islands(const SearchConfig& config, std::vector<Sketch> opening);
// A random setting of a random sketch.
std::unique_ptr<Strategy> make_random(const SearchConfig& config, std::vector<Sketch> opening);

}  // namespace kbeam
