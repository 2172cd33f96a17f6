// kbeam tune --simulate: how far tuners get on a recorded space, over many seeds. Builds and runs
// nothing.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/tune_modes.h"
#include "base/entropy.h"
#include "base/gzip.h"
#include "model/json_forms.h"
#include "search/recorded_space.h"
#include "search/simulated_tuning.h"

namespace kbeam::cli {
namespace {

constexpr std::array kShownAt{10, 25, 50, 100, 200, 500, 1000};
constexpr std::uint64_t kMostSeeds = 10'000;

struct Simulation {
  TunerStrategy strategy;
  std::vector<std::vector<double>> tunings;  // a distance an evaluation, by seed
};

Result<RecordedSpace> read_recorded_space(const std::string& file) {
  ASSIGN_OR_RETURN(std::string bytes, read_file(file));
  if (is_gzip(bytes)) {
    ASSIGN_OR_RETURN(bytes, gunzip(bytes, file));
  }
  ASSIGN_OR_RETURN(SpaceRecord record, parse_space(bytes, file));
  return RecordedSpace(std::move(record));
}

std::vector<int> shown_at(int evaluations) {
  std::vector<int> shown;
  for (const int at : kShownAt)
    if (at < evaluations) shown.push_back(at);
  shown.push_back(evaluations);
  return shown;
}

std::string percent(double distance) {
  return std::isfinite(distance) ? fmt::format("{:.2f} %", 100 * distance) : "-";
}

void print_space(const RecordedSpace& space, const std::string& file) {
  fmt::print(
      "{}: {} settings of {} knobs, {} failed; the best takes {:.4g} ms, the middle {:.2f} "
      "times that\n",
      file, space.record().settings.size(), space.record().knobs.size(), space.failures(),
      space.best_ms(), space.median_ms() / space.best_ms());
}

void print_table(const std::vector<Simulation>& simulations, int evaluations, std::size_t seeds) {
  fmt::print(
      "\nhow far from the best after so many evaluations: median of {} tunings, and their "
      "middle half\n\n{:<14}",
      seeds, "");
  const std::vector<int> shown = shown_at(evaluations);
  for (const int at : shown) fmt::print("{:>26}", at);
  fmt::print("\n");
  for (const Simulation& simulation : simulations) {
    fmt::print("{:<14}", simulation.strategy.name);
    for (const int at : shown) {
      const DistanceSummary summary =
          summarise_distances(simulation.tunings, static_cast<std::size_t>(at));
      fmt::print("{:>26}", fmt::format("{} ({} - {})", percent(summary.median),
                                       percent(summary.low), percent(summary.high)));
    }
    fmt::print("\n");
  }
}

// Only where a tuning found something better: [evaluation, distance], from which all is known.
Json improvements(const std::vector<double>& tuning) {
  Json list = Json::array();
  double before = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < tuning.size(); ++i) {
    if (!(tuning[i] < before)) continue;
    before = tuning[i];
    list.push_back({i + 1, std::stod(fmt::format("{:.5g}", before))});
  }
  return list;
}

void print_json(const RecordedSpace& space, const std::vector<Simulation>& simulations,
                int evaluations) {
  Json json = {{"kernel", space.record().kernel}, {"settings", space.record().settings.size()},
               {"failed", space.failures()},      {"best_ms", space.best_ms()},
               {"median_ms", space.median_ms()},  {"evaluations", evaluations},
               {"strategies", Json::object()}};
  for (const Simulation& simulation : simulations) {
    Json& one = json["strategies"][std::string(simulation.strategy.name)];
    one["tunings"] = Json::array();
    for (const std::vector<double>& tuning : simulation.tunings)
      one["tunings"].push_back(improvements(tuning));
    for (const int at : shown_at(evaluations)) {
      const DistanceSummary summary =
          summarise_distances(simulation.tunings, static_cast<std::size_t>(at));
      // An infinite distance (nothing worked yet) is null.
      one["distance"][std::to_string(at)] = {
          {"low", summary.low}, {"median", summary.median}, {"high", summary.high}};
    }
  }
  fmt::print("{}\n", json_text(json));
}

}  // namespace

Result<int> simulate_tuners(const Options& options) {
  const std::string file = options.get("FILE");
  ASSIGN_OR_RETURN(const RecordedSpace space, read_recorded_space(file));
  ASSIGN_OR_RETURN(const std::vector<TunerStrategy> strategies, chosen_strategies(options));
  ASSIGN_OR_RETURN(const int seeds, parse_count(options.get("--seeds"), "--seeds", 100'000));
  int evaluations = 200;
  std::uint64_t seed = 1;
  if (options.has("--evaluations")) {
    ASSIGN_OR_RETURN(evaluations, parse_count(options.get("--evaluations"), "--evaluations"));
  }
  if (options.has("--seed")) {
    ASSIGN_OR_RETURN(seed, parse_number(options.get("--seed"), "--seed"));
  }
  const int asked = std::min(evaluations, static_cast<int>(space.record().settings.size()));
  std::vector<Simulation> simulations;
  for (const TunerStrategy& strategy : strategies) {
    Simulation& simulation = simulations.emplace_back(Simulation{strategy, {}});
    for (std::uint64_t i = 0; i < std::clamp<std::uint64_t>(seeds, 1, kMostSeeds); ++i)
      simulation.tunings.push_back(
          simulate_tuning(strategy, space, derive_seed(seed, "tuning", i), asked));
  }
  if (options.json()) {
    print_json(space, simulations, asked);
  } else {
    print_space(space, file);
    print_table(simulations, asked, simulations.front().tunings.size());
  }
  return kDone;
}

}  // namespace kbeam::cli
