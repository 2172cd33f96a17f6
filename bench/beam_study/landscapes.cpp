// The landscapes of the study, with what was expected of each before it was run.
#include <memory>

#include "bench/beam_study/recorded_world.h"
#include "bench/beam_study/simulated_world.h"
#include "bench/beam_study/world.h"

namespace kbeam {
namespace {

Landscape simulated(std::string name, std::string text, std::string expected, Recipe recipe) {
  return {
      std::move(name), std::move(text), std::move(expected), 80, 320, [recipe](std::uint64_t seed) {
        return make_simulated_world(recipe, seed);
      }};
}

std::vector<Landscape> simulated_landscapes() {
  return {
      simulated("smooth_single", "One sketch, smooth hills: nothing to choose between.", "nobody",
                {.opening = 1}),
      simulated("smooth_clear", "Six sketches far apart; the best default is the best summit.",
                "greedy", {.spread = 0.6, .slope = 1.0}),
      simulated("smooth_close", "Six sketches within 10 % of each other.", "greedy",
                {.spread = 0.08, .split = 0.05}),
      simulated("hidden_best", "The better a sketch, the worse its default.", "beam",
                {.hidden = 1, .slope = 2.0}),
      simulated("rugged", "Pairs of knobs interact: many local optima.", "beam", {.rugged = 0.25}),
      simulated("rugged_hidden", "Both: local optima, and good sketches with poor defaults.",
                "beam", {.hidden = 1, .slope = 2.0, .rugged = 0.25}),
      simulated("split_cases", "Each case has its own best sketch.", "beam",
                {.spread = 0.1, .split = 0.6}),
      simulated("late_structure",
                "Three sketches, then nine better ones, one every 20 evaluations, with poorer "
                "defaults.",
                "beam",
                {.opening = 3, .later = 9, .every = 20, .rise = 0.1, .hidden = 0.6, .slope = 1.6}),
      simulated("few_good", "A weak proposer: 24 sketches, 60 % right, one in ten 2.5 x better.",
                "beam", {.opening = 12, .later = 12, .every = 10, .right = 0.6, .good = 0.1}),
      simulated("many_good", "A strong proposer: 12 sketches, 95 % right, six in ten 2.5 x better.",
                "greedy", {.opening = 6, .later = 6, .every = 20, .right = 0.95, .good = 0.6}),
      simulated("fragile_best", "The best sketches give wrong values at 60 % of their settings.",
                "beam", {.spread = 0.4, .fragile = 0.6}),
  };
}

}  // namespace

Result<std::vector<Landscape>> make_landscapes(const std::filesystem::path& recorded) {
  std::vector<Landscape> all = simulated_landscapes();
  struct Replay {
    const char* name;
    const char* file;
    const char* text;
    const char* expected;
    int short_budget;
    int long_budget;
  };
  for (const Replay& replay :
       {Replay{"replay_qr_cpu", "20261129-221530-kuir.jsonl",
               "campaigns/20261129-221530-kuir: five families of QR on a CPU, six cases.", "beam",
               80, 320},
        Replay{"replay_qr_h200", "batched_qr_h200.jsonl",
               "campaigns/batched_qr_h200: kernels for an H200, made by hand, version by version.",
               "greedy", 12, 24}}) {
    ASSIGN_OR_RETURN(RecordedCampaign loaded, load_recorded_campaign(recorded / replay.file));
    const auto campaign = std::make_shared<const RecordedCampaign>(std::move(loaded));
    all.push_back({replay.name, replay.text, replay.expected, replay.short_budget,
                   replay.long_budget,
                   [campaign](std::uint64_t) { return make_recorded_world(campaign); }});
  }
  return all;
}

}  // namespace kbeam
