#include "search/knob_space.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Knob knob(std::string name, std::string fallback, std::vector<std::string> choices) {
  return {std::move(name), "int", std::move(fallback), std::move(choices)};
}

TEST(KnobSpace, DefaultsAndSize) {
  const KnobSpace space(
      {knob("kPanel", "32", {"16", "32", "64"}), knob("kDeep", "false", {"false", "true"})}, {});
  EXPECT_EQ(space.defaults(), (KnobValues{{"kPanel", "32"}, {"kDeep", "false"}}));
  EXPECT_EQ(space.size(), 6);
  EXPECT_EQ(KnobSpace({}, {}).size(), 1);
}

TEST(KnobSpace, SizeSaturates) {
  std::vector<Knob> knobs;
  for (int i = 0; i < 80; ++i) knobs.push_back(knob(fmt::format("k{}", i), "1", {"1", "2", "3"}));
  EXPECT_EQ(KnobSpace(knobs, {}).size(), std::numeric_limits<std::int64_t>::max());
}

TEST(KnobSpace, TidiesChoices) {
  const KnobSpace space({knob("kA", "8", {"64", "16", "64"}), knob("kB", "x", {"16", "x", "8"})},
                        {});
  EXPECT_THAT(space.knobs()[0].choices, ElementsAre("8", "16", "64"));
  EXPECT_THAT(space.knobs()[1].choices,
              ElementsAre("16", "x", "8"));  // not all integers: as listed
}

TEST(KnobSpace, ConstraintsOverIntegersAndBools) {
  const KnobSpace space(
      {knob("kPanel", "32", {"16", "32", "64"}), knob("kWidth", "8", {"8", "16", "32"}),
       knob("kPacked", "true", {"true", "false"})},
      {{"kPanel % kWidth == 0", ""}, {"kPacked || kWidth == 8", ""}});
  EXPECT_TRUE(space.allows(KnobValues{{"kPanel", "32"}, {"kWidth", "32"}, {"kPacked", "true"}}));
  EXPECT_FALSE(space.allows(KnobValues{{"kPanel", "16"}, {"kWidth", "32"}, {"kPacked", "true"}}));
  EXPECT_FALSE(space.allows(KnobValues{{"kPanel", "32"}, {"kWidth", "16"}, {"kPacked", "false"}}));
  EXPECT_TRUE(space.allows(KnobValues{{"kWidth", "16"}}));  // the rest keeps its defaults
}

TEST(KnobSpace, WhatCannotBeDecidedIsLeftToTheCompiler) {
  const KnobSpace space(
      {knob("kWidth", "kbeam::kNativeFloats", {"kbeam::kNativeFloats", "8", "16"}),
       knob("kRows", "4", {"4", "6"})},
      {{"kWidth % 16 == 0", ""},            // opaque only at the default
       {"kRows * sizeof(float) < 20", ""},  // sizeof is the compiler's
       {"kRows < kHidden", ""},             // a constant of the source
       {"kRows @ 3", ""}});                 // no expression
  EXPECT_TRUE(space.allows(space.defaults()));
  EXPECT_FALSE(space.allows(KnobValues{{"kWidth", "8"}}));
  EXPECT_TRUE(space.allows(KnobValues{{"kWidth", "16"}, {"kRows", "6"}}));
}

TEST(KnobSpace, RefusesWhatItDoesNotKnow) {
  const KnobSpace space({knob("kA", "1", {"1", "2"})}, {});
  EXPECT_FALSE(space.allows(KnobValues{{"kA", "3"}}));
  EXPECT_FALSE(space.allows(KnobValues{{"kB", "1"}}));
  EXPECT_EQ(space.find_setting({{"kA", "3"}}), std::nullopt);
}

TEST(KnobSpace, NeighboursDifferInOneKnobNextChoicesFirst) {
  const KnobSpace space({knob("kA", "2", {"1", "2", "4", "8"}), knob("kB", "1", {"1", "2"})},
                        {{"kA != 4", ""}});
  const auto found = space.neighbours(space.defaults());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[2], (KnobValues{{"kA", "8"}, {"kB", "1"}}));  // two choices away comes last
  EXPECT_THAT(found, UnorderedElementsAre(KnobValues{{"kA", "1"}, {"kB", "1"}},
                                          KnobValues{{"kA", "8"}, {"kB", "1"}},
                                          KnobValues{{"kA", "2"}, {"kB", "2"}}));
}

TEST(KnobSpace, TablesAndTextDecideAlike) {
  // The same constraint over few combinations (a table) and over many (evaluated as text).
  std::vector<std::string> many;
  for (int i = 1; i <= 20; ++i) many.push_back(std::to_string(i));
  const KnobSpace large(
      {knob("a", "1", many), knob("b", "1", many), knob("c", "1", many), knob("d", "1", many)},
      {{"(a + b * c) % (d + 1) == 0", ""}});
  for (int a = 1; a <= 20; a += 3)
    for (int b = 1; b <= 20; b += 2)
      for (int c = 1; c <= 20; c += 4)
        for (int d = 1; d <= 20; ++d) {
          const KnobValues values{{"a", std::to_string(a)},
                                  {"b", std::to_string(b)},
                                  {"c", std::to_string(c)},
                                  {"d", std::to_string(d)}};
          ASSERT_EQ(large.allows(values), (a + b * c) % (d + 1) == 0);
        }
  const KnobSpace small({knob("a", "1", many), knob("b", "1", many)}, {{"a % b == 0", ""}});
  for (int a = 1; a <= 20; ++a)
    for (int b = 1; b <= 20; ++b)
      ASSERT_EQ(small.allows(KnobValues{{"a", std::to_string(a)}, {"b", std::to_string(b)}}),
                a % b == 0);
}

TEST(KnobSpace, ListedSettingsReplaceTheConstraints) {
  KnobSpace space({{"a", "int", "1", {"1", "2", "3"}}, {"b", "int", "5", {"5", "6"}}},
                  {{"a + b < 7", ""}});
  space.restrict_to({{2, 1}, {0, 0}, {2, 0}, {2, 1}});
  EXPECT_TRUE(space.allows(KnobValues{{"a", "3"}, {"b", "6"}}));
  EXPECT_TRUE(space.allows(KnobValues{{"a", "1"}}));
  EXPECT_FALSE(space.allows(KnobValues{{"a", "1"}, {"b", "6"}}));
  EXPECT_FALSE(space.allows(KnobValues{{"a", "2"}}));
  EXPECT_TRUE(space.allows_so_far({2, 0}, 0));
  EXPECT_FALSE(space.allows_so_far({1, 0}, 0));
  EXPECT_EQ(space.neighbours({{"a", "3"}, {"b", "5"}}).size(), 2u);
  const KnobSpace copy = space;
  EXPECT_FALSE(copy.allows(KnobValues{{"a", "2"}}));
}

}  // namespace
}  // namespace kbeam
