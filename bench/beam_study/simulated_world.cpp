#include "bench/beam_study/simulated_world.h"

#include <fmt/format.h>
#include <kbeam/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "base/entropy.h"
#include "search/simulated_campaign.h"

namespace kbeam {
namespace {

constexpr int kCases = 4;
constexpr int kKnobs = 5;
using Summit = std::array<double, kKnobs>;  // 0..1 along each knob

struct Hill {
  bool right = true;
  double fragile = 0;
  std::uint64_t seed = 0;
  std::array<double, kCases> peak{};  // ln of the speed-up at the summit
  std::array<Summit, kCases> summit{};
};

// A number in [0, 1) that belongs to these choices of these knobs of one hill.
double hashed(std::uint64_t seed, int knob, int first, int second) {
  return Random(seed, static_cast<std::uint64_t>((knob * 64 + first) * 64 + second)).uniform();
}

bool is_refused(const Hill& hill, const std::vector<int>& choices) {
  if (!hill.right) return true;
  if (hill.fragile == 0) return false;
  const bool is_default = std::ranges::all_of(choices, [](int choice) { return choice == 0; });
  return is_default || hashed(hill.seed, 31, choices[0], choices[1]) < hill.fragile;
}

double ln_speedup(const Hill& hill, const Recipe& recipe, const std::vector<int>& choices,
                  std::size_t which) {
  double distance = 0, interaction = 0;
  for (int knob = 0; knob < kKnobs; ++knob) {
    const std::size_t k = static_cast<std::size_t>(knob), next = (k + 1) % kKnobs;
    const double along = static_cast<double>(choices[k]) / (simulated_knob_sizes()[k] - 1);
    distance += std::pow(along - hill.summit[which][k], 2);
    if (recipe.rugged > 0)
      interaction += hashed(hill.seed + which, knob, choices[k], choices[next]) - 0.5;
  }
  return hill.peak[which] - recipe.slope * distance / kKnobs +
         recipe.rugged * interaction / std::sqrt(kKnobs / 12.0);
}

std::vector<Hill> make_hills(const Recipe& recipe, Random& random) {
  const std::size_t count = static_cast<std::size_t>(recipe.opening + recipe.later);
  std::vector<double> height(count);
  std::vector<bool> right(count);
  for (std::size_t i = 0; i < count; ++i) {
    right[i] = random.uniform() < recipe.right;
    const bool good = random.uniform() < recipe.good;
    const int later = std::max(0, static_cast<int>(i) - recipe.opening + 1);
    height[i] = std::log(2.0) + recipe.spread * random.normal() + (good ? recipe.lift : 0) +
                recipe.rise * later;
  }
  if (std::ranges::none_of(right, [](bool is) { return is; })) right[0] = true;
  std::vector<Hill> hills(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto below = std::ranges::count_if(height, [&](double h) { return h < height[i]; });
    const double rank = count > 1 ? static_cast<double>(below) / static_cast<double>(count - 1) : 1;
    const double far = 0.5 + recipe.hidden * 0.5 * (2 * rank - 1);
    Hill& hill = hills[i];
    hill.right = right[i];
    hill.fragile = rank > 2.0 / 3 ? recipe.fragile : 0;
    hill.seed = random.bits();
    Summit centre;
    for (double& along : centre) along = std::clamp(far + 0.15 * random.normal(), 0.0, 1.0);
    for (std::size_t which = 0; which < kCases; ++which) {
      hill.peak[which] = height[i] + recipe.split * random.normal();
      for (std::size_t k = 0; k < kKnobs; ++k)
        hill.summit[which][k] = std::clamp(centre[k] + 0.12 * random.normal(), 0.0, 1.0);
    }
  }
  return hills;
}

std::string case_name(std::size_t which) {
  return fmt::format("case{}", which);
}

// Calls `visit` with every allowed setting.
template <typename Visit>
void for_each_setting(const Visit& visit) {
  const std::vector<int>& sizes = simulated_knob_sizes();
  CHECK(sizes.size() == kKnobs, "hills are over the knobs of simulated_sketch");
  std::vector<int> choices(kKnobs, 0);
  for (;;) {
    if ((choices[0] + choices[1]) % 6 != 5) visit(choices);
    std::size_t k = 0;
    while (k < kKnobs && ++choices[k] == sizes[k]) choices[k++] = 0;
    if (k == kKnobs) return;
  }
}

}  // namespace

World make_simulated_world(const Recipe& recipe, std::uint64_t seed) {
  Random random(derive_seed(seed, "world"));
  const auto hills = std::make_shared<std::vector<Hill>>(make_hills(recipe, random));
  World world;
  for (std::size_t which = 0; which < kCases; ++which) world.cases.push_back(case_name(which));
  for (std::size_t i = 0; i < hills->size(); ++i) {
    const int later = static_cast<int>(i) - recipe.opening;
    const std::string name = fmt::format("family{:02}", i);
    world.arrivals.push_back(
        {later < 0 ? 0 : (later + 1) * recipe.every, simulated_sketch(name, "code " + name)});
    if (!(*hills)[i].right) continue;
    for_each_setting([&](const std::vector<int>& choices) {
      if (is_refused((*hills)[i], choices)) return;
      for (std::size_t which = 0; which < kCases; ++which) {
        double& best = world.optimum[case_name(which)];
        best = std::max(best, std::exp(ln_speedup((*hills)[i], recipe, choices, which)));
      }
    });
  }
  world.truth = [hills, recipe](const Candidate& candidate) {
    const Hill& hill = hills->at(std::stoul(candidate.family.substr(6)));
    const std::vector<int> choices = simulated_choices(candidate);
    if (is_refused(hill, choices)) return Truth{Verdict::wrong_value, {}};
    Truth truth;
    for (std::size_t which = 0; which < kCases; ++which)
      truth.speedup[case_name(which)] = std::exp(ln_speedup(hill, recipe, choices, which));
    return truth;
  };
  return world;
}

}  // namespace kbeam
