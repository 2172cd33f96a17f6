// kbeam-beam-study RECORDED [--seeds N] [--first-seed N] [--variants]: runs every landscape with
// every strategy and prints one JSON object. The same arguments give the same bytes.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/beam_study/course.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

struct Contestant {
  std::string name;
  MakeStrategy make = nullptr;
  SearchConfig search;
};

std::vector<Contestant> contestants() {
  return {{"beam", make_beam, {}},
          {"greedy", make_greedy, {}},
          {"islands", make_islands, {}},
          {"random", make_random, {}}};
}

// The beam with one number of its configuration changed.
std::vector<Contestant> variants() {
  std::vector<Contestant> all{{"beam", make_beam, {}}};
  const auto vary = [&](std::string name, const auto& change) {
    Contestant& made = all.emplace_back(Contestant{std::move(name), make_beam, {}});
    change(made.search);
  };
  for (const int places : {2, 6})
    vary(fmt::format("beam = {}", places), [&](SearchConfig& c) { c.beam = places; });
  for (const int trials : {6, 20})
    vary(fmt::format("trials_before_judgement = {}", trials),
         [&](SearchConfig& c) { c.trials_before_judgement = trials; });
  for (const int starts : {1, 6})
    vary(fmt::format("random_starts = {}", starts),
         [&](SearchConfig& c) { c.random_starts = starts; });
  for (const double share : {0.1, 0.35})
    vary(fmt::format("structural_share = {}", share),
         [&](SearchConfig& c) { c.structural_share = share; });
  for (const int stagnation : {15, 60})
    vary(fmt::format("stagnation = {}", stagnation),
         [&](SearchConfig& c) { c.stagnation = stagnation; });
  for (const double margin : {0.0, 0.05})
    vary(fmt::format("challenge_margin = {}", margin),
         [&](SearchConfig& c) { c.challenge_margin = margin; });
  return all;
}

struct Arguments {
  std::filesystem::path recorded;
  int seeds = 300;
  int first_seed = 1;
  bool variants = false;
};

double rounded(double value) {
  return std::round(value * 1e5) / 1e5;
}

// Mean course at up to 40 points, and what every seed had reached at both budgets.
Json run_contestant(const Landscape& landscape, const Contestant& who, const Arguments& arguments) {
  std::vector<double> sum(static_cast<std::size_t>(landscape.long_budget), 0);
  Json at_short = Json::array(), at_long = Json::array();
  for (int i = 0; i < arguments.seeds; ++i) {
    const auto seed = static_cast<std::uint64_t>(arguments.first_seed + i);
    const World world = landscape.make(seed);
    const std::vector<double> reached = run_course(
        world, who.make, {.search = who.search, .seed = seed, .budget = landscape.long_budget});
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += reached[at];
    at_short.push_back(rounded(reached[static_cast<std::size_t>(landscape.short_budget) - 1]));
    at_long.push_back(rounded(reached.back()));
  }
  Json course = Json::array();
  const std::size_t stride = std::max<std::size_t>(1, sum.size() / 40);
  for (std::size_t at = stride; at <= sum.size(); at += stride)
    course.push_back({at, rounded(sum[at - 1] / arguments.seeds)});
  return {{"name", who.name}, {"short", at_short}, {"long", at_long}, {"course", course}};
}

Result<Json> run_study(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<Landscape> landscapes, make_landscapes(arguments.recorded));
  Json study{{"seeds", arguments.seeds},
             {"first_seed", arguments.first_seed},
             {"landscapes", Json::array()}};
  for (const Landscape& landscape : landscapes) {
    Json entry{{"name", landscape.name},
               {"text", landscape.text},
               {"expected", landscape.expected},
               {"short_budget", landscape.short_budget},
               {"long_budget", landscape.long_budget}};
    entry["strategies"] = Json::array();
    for (const Contestant& who : arguments.variants ? variants() : contestants())
      entry["strategies"].push_back(run_contestant(landscape, who, arguments));
    study["landscapes"].push_back(std::move(entry));
    std::fprintf(stderr, "%s\n", landscape.name.c_str());
  }
  return study;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments{argv[1]};
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--variants") == 0) arguments.variants = true;
    if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
      arguments.seeds = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--first-seed") == 0 && i + 1 < argc)
      arguments.first_seed = std::atoi(argv[++i]);
  }
  return arguments;
}

}  // namespace
}  // namespace kbeam

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: kbeam-beam-study RECORDED [--seeds N] [--first-seed N] [--variants]\n");
    return 2;
  }
  const kbeam::Result<kbeam::Json> study = kbeam::run_study(kbeam::parse(argc, argv));
  if (!study.ok()) {
    std::fprintf(stderr, "%s\n", study.error().text().c_str());
    return 1;
  }
  std::puts(kbeam::json_text(*study).c_str());
  return 0;
}
