#include "search/tuner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace kbeam {
namespace {

using MakeTuner = std::unique_ptr<Tuner> (*)(const KnobSpace&, std::uint64_t);

Knob knob(const std::string& name, int choices) {
  Knob made{name, "int", "0", {}};
  for (int i = 0; i < choices; ++i) made.choices.push_back(std::to_string(i));
  return made;
}

std::string numbered(int i) {
  return fmt::format("k{}", i);
}

int at(const KnobValues& values, const std::string& name) {
  return std::stoi(values.at(name));
}

class EveryTuner : public ::testing::TestWithParam<MakeTuner> {};

TEST_P(EveryTuner, ExhaustsASmallSpaceExactly) {
  const KnobSpace space({knob("a", 6), knob("b", 5), knob("c", 4)},
                        {{"(a + b) % 3 != 1", ""}, {"c <= a + 1", ""}});
  std::set<KnobValues> expected;
  for (int a = 0; a < 6; ++a)
    for (int b = 0; b < 5; ++b)
      for (int c = 0; c < 4; ++c)
        if ((a + b) % 3 != 1 && c <= a + 1)
          expected.insert(
              {{"a", std::to_string(a)}, {"b", std::to_string(b)}, {"c", std::to_string(c)}});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto tuner = GetParam()(space, seed);
    std::set<KnobValues> seen;
    while (const auto values = tuner->ask()) {
      ASSERT_TRUE(seen.insert(*values).second) << "asked twice: " << describe_knobs(*values);
      ASSERT_TRUE(expected.contains(*values)) << "not allowed: " << describe_knobs(*values);
      const bool failed = at(*values, "a") == 2;
      tuner->tell(*values, failed ? std::nullopt
                                  : std::optional<double>(at(*values, "b") - at(*values, "c")));
    }
    EXPECT_EQ(seen, expected);
  }
}

TEST_P(EveryTuner, EndsInAHugeSpaceWithFewAllowedSettings) {
  std::vector<Knob> knobs;
  std::vector<KnobConstraint> constraints;
  for (int i = 0; i < 9; ++i) knobs.push_back(knob(numbered(i), 10));
  for (int i = 1; i < 9; ++i) constraints.push_back({fmt::format("k{} == k{}", i, i - 1), ""});
  const KnobSpace space(knobs, constraints);
  ASSERT_EQ(space.size(), 1'000'000'000);
  const auto tuner = GetParam()(space, 3);
  std::set<KnobValues> seen;
  while (const auto values = tuner->ask()) {
    ASSERT_TRUE(space.allows(*values));
    ASSERT_TRUE(seen.insert(*values).second);
    tuner->tell(*values, 1.0);
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST_P(EveryTuner, EndsWhenNothingIsAllowed) {
  std::vector<Knob> knobs;
  for (int i = 0; i < 9; ++i) knobs.push_back(knob(numbered(i), 10));
  // Only the last knob decides, so that the enumeration has to give up.
  const KnobSpace space(knobs, {{"k0 + k1 + k2 + k3 + k4 + k5 + k6 + k7 + k8 > 81", ""}});
  EXPECT_EQ(GetParam()(space, 1)->ask(), std::nullopt);
}

TEST_P(EveryTuner, AsksOnceWithoutKnobs) {
  const auto tuner = GetParam()(KnobSpace({}, {}), 1);
  EXPECT_EQ(tuner->ask(), KnobValues{});
  EXPECT_EQ(tuner->ask(), std::nullopt);
}

TEST_P(EveryTuner, SeedsRepeatAndDiffer) {
  const KnobSpace space({knob("a", 20), knob("b", 20)}, {});
  const auto trace = [&](std::uint64_t seed) {
    const auto tuner = GetParam()(space, seed);
    std::vector<KnobValues> asked;
    for (int i = 0; i < 30; ++i) {
      asked.push_back(*tuner->ask());
      tuner->tell(asked.back(), -std::abs(at(asked.back(), "a") - 9));
    }
    return asked;
  };
  EXPECT_EQ(trace(5), trace(5));
  EXPECT_NE(trace(5), trace(6));
}

TEST_P(EveryTuner, SkipsWhatWasToldOrExcludedByOthers) {
  const KnobSpace space({knob("a", 4), knob("b", 2)}, {});
  const auto tuner = GetParam()(space, 9);
  tuner->tell({{"a", "1"}, {"b", "1"}}, 3.0);
  tuner->exclude({{"a", "2"}});
  tuner->tell({{"a", "77"}}, 9.0);  // outside the space: ignored
  std::set<KnobValues> seen;
  while (const auto values = tuner->ask())
    seen.insert(*values);  // nothing told: any number in flight
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_FALSE(seen.contains({{"a", "1"}, {"b", "1"}}));
  EXPECT_FALSE(seen.contains({{"a", "2"}, {"b", "0"}}));
}

INSTANTIATE_TEST_SUITE_P(Tuner, EveryTuner,
                         ::testing::Values(&make_random_tuner, &make_local_search_tuner,
                                           &make_evolutionary_tuner, &make_model_tuner,
                                           &make_auto_tuner));

TEST(RandomTuner, IsUniformOverAllowedSettings) {
  const KnobSpace space({knob("a", 3), knob("b", 2)}, {{"a != 1 || b != 1", ""}});
  std::map<KnobValues, int> first;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) ++first[*make_random_tuner(space, seed)->ask()];
  ASSERT_EQ(first.size(), 5u);
  for (const auto& [values, count] : first) EXPECT_NEAR(count, 1000, 150) << describe_knobs(values);
}

// Six knobs, 10,800 settings, one hill with a mild interaction, as tile sizes have it.
const KnobSpace& hill_space() {
  static const KnobSpace space(
      {knob("a", 6), knob("b", 6), knob("c", 5), knob("d", 5), knob("e", 4), knob("f", 3)},
      {{"(a + b) % 7 != 6", ""}});
  return space;
}

double hill(const KnobValues& values) {
  const double a = at(values, "a") - 4, b = at(values, "b") - 3, c = at(values, "c") - 3,
               d = at(values, "d") - 1;
  const double e = at(values, "e") - 2, f = at(values, "f") - 1;
  return 5 * std::exp(-(0.1 * a * a + 0.08 * b * b + 0.05 * a * b + 0.1 * c * c + 0.05 * d * d +
                        0.1 * e * e + 0.2 * f * f));
}

struct Landscape {
  const KnobSpace& space;
  std::function<std::optional<double>(const KnobValues&)> score;
  double enough = 0;
};

double median_evaluations(MakeTuner make, const Landscape& landscape, std::size_t seeds = 50) {
  std::vector<int> needed;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const auto tuner = make(landscape.space, seed);
    for (int evaluations = 1;; ++evaluations) {
      const auto values = tuner->ask();
      if (!values) return -1;
      const auto score = landscape.score(*values);
      tuner->tell(*values, score);
      if (score && *score >= landscape.enough) {
        needed.push_back(evaluations);
        break;
      }
    }
  }
  std::sort(needed.begin(), needed.end());
  return needed[needed.size() / 2];
}

TEST(LocalSearch, ClimbsASmoothHillFarSoonerThanRandom) {
  const Landscape landscape{hill_space(), hill, 5.0};
  const double local = median_evaluations(&make_local_search_tuner, landscape);
  const double random = median_evaluations(&make_random_tuner, landscape);
  RecordProperty("local", static_cast<int>(local));
  RecordProperty("random", static_cast<int>(random));
  EXPECT_GT(local, 0);
  EXPECT_LT(local * 20, random) << local << " against " << random;
}

TEST(LocalSearch, GetsRoundFailures) {
  const auto with_failures = [](const KnobValues& values) -> std::optional<double> {
    if ((at(values, "a") * 3 + at(values, "c") * 5 + at(values, "d")) % 4 == 0 &&
        hill(values) < 4.9)
      return std::nullopt;
    return hill(values);
  };
  const Landscape landscape{hill_space(), with_failures, 5.0};
  const double local = median_evaluations(&make_local_search_tuner, landscape);
  const double random = median_evaluations(&make_random_tuner, landscape);
  EXPECT_GT(local, 0);
  EXPECT_LT(local * 10, random) << local << " against " << random;
}

// A strategy that looks at what it was told needs far fewer than one that does not.
TEST(EveryStrategy, BeatsRandomOnASmoothHillWithFailures) {
  // Where a and c are both high nothing builds: a border that can be learned.
  const auto with_border = [](const KnobValues& values) -> std::optional<double> {
    if (at(values, "a") + at(values, "c") > 8) return std::nullopt;
    return hill(values);
  };
  const Landscape landscape{hill_space(), with_border, 4.5};
  const double random = median_evaluations(&make_random_tuner, landscape, 15);
  for (const TunerStrategy& strategy : tuner_strategies()) {
    if (strategy.name == "random") continue;
    const double needed = median_evaluations(strategy.make, landscape, 15);
    RecordProperty(std::string(strategy.name), static_cast<int>(needed));
    EXPECT_GT(needed, 0);
    EXPECT_LT(needed * 4, random) << strategy.name << ": " << needed << " against " << random;
  }
}

TEST(EveryStrategy, HasANameThatItsTunerTells) {
  const KnobSpace space({knob("a", 3)}, {});
  std::set<std::string> names;
  for (const TunerStrategy& strategy : tuner_strategies()) {
    EXPECT_EQ(strategy.make(space, 1)->name(), strategy.name);
    EXPECT_TRUE(names.insert(std::string(strategy.name)).second);
  }
  EXPECT_EQ(tuner_strategies().front().name, "auto");
}

// Half of the space fails and is no faster for it: few settings are lost there.
TEST(ModelTuner, KeepsAwayFromWhatFailed) {
  const KnobSpace space({knob("a", 10), knob("b", 20), knob("c", 20)}, {});
  int failed = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto tuner = make_model_tuner(space, seed);
    for (int i = 0; i < 40; ++i) {
      const KnobValues values = *tuner->ask();
      const bool fails = at(values, "a") >= 5;
      if (i >= 20) failed += fails ? 1 : 0;
      tuner->tell(values,
                  fails ? std::nullopt
                        : std::optional<double>(1 + 0.1 * at(values, "b") + 0.1 * at(values, "c")));
    }
  }
  EXPECT_LE(failed, 50) << "of 200, where chance fails 100";
}

TEST(ModelTuner, TakesBackWhatASecondLookDenies) {
  const KnobSpace space({knob("a", 12), knob("b", 12)}, {});
  const auto tuner = make_model_tuner(space, 2);
  std::vector<KnobValues> asked;
  for (int i = 0; i < 30; ++i) {
    asked.push_back(*tuner->ask());
    tuner->tell(asked.back(), 1.0 + at(asked.back(), "a"));
  }
  tuner->tell(asked[3], std::nullopt);
  tuner->tell(asked[4], 0.5);
  std::set<KnobValues> seen(asked.begin(), asked.end());
  for (int i = 0; i < 30; ++i) {
    const KnobValues values = *tuner->ask();
    EXPECT_TRUE(seen.insert(values).second);
    tuner->tell(values, 1.0 + at(values, "a"));
    ASSERT_TRUE(tuner->parent().has_value());
    EXPECT_NE(*tuner->parent(), asked[3]);
  }
}

// A low broad hill and a high narrow one: one climb is not enough.
TEST(LocalSearch, KicksOutOfALocalOptimum) {
  const KnobSpace space({knob("a", 12), knob("b", 12), knob("c", 6)}, {});
  const auto two_hills = [](const KnobValues& values) -> std::optional<double> {
    const double a = at(values, "a"), b = at(values, "b"), c = at(values, "c");
    const double broad =
        3 * std::exp(-0.02 * ((a - 2) * (a - 2) + (b - 2) * (b - 2) + (c - 1) * (c - 1)));
    const double narrow =
        5 * std::exp(-0.15 * ((a - 9) * (a - 9) + (b - 9) * (b - 9) + (c - 4) * (c - 4)));
    return std::max(broad, narrow);
  };
  const Landscape landscape{space, two_hills, 5.0};
  const double local = median_evaluations(&make_local_search_tuner, landscape);
  const double random = median_evaluations(&make_random_tuner, landscape);
  EXPECT_GT(local, 0);
  EXPECT_LT(local * 2, random) << local << " against " << random;
}

TEST(LocalSearch, TakesASecondScoreOfOneSetting) {
  const KnobSpace space({knob("a", 9)}, {});
  const auto tuner = make_local_search_tuner(space, 1);
  tuner->tell({{"a", "1"}}, 9.0);
  tuner->tell({{"a", "6"}}, 5.0);
  tuner->tell({{"a", "8"}}, 1.0);
  tuner->exclude({{"a", "0"}});
  tuner->tell({{"a", "1"}}, 2.0);  // the first score was luck
  ASSERT_TRUE(tuner->ask().has_value());
  EXPECT_EQ(tuner->parent(), (KnobValues{{"a", "6"}}));
}

}  // namespace
}  // namespace kbeam
