#include "propose/idea_match.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(IdeaMatch, AnotherWordingIsTheSameIdea) {
  const std::vector<std::string> known{
      "Hold several short rows in registers at once, so that reductions overlap.",
      "Keep the exponentials of a row in a staging row in the cache."};
  EXPECT_EQ(
      find_same_idea("hold several short rows in registers at once so reductions overlap", known),
      known.data());
  EXPECT_EQ(find_same_idea(
                "Holding several short rows in the registers, and overlapping reductions", known),
            known.data());
  EXPECT_EQ(find_same_idea("A staging row in the cache keeps exponentials of each row", known),
            &known[1]);
}

TEST(IdeaMatch, ADifferentIdeaInTheSameWordsIsLetThrough) {
  const std::vector<std::string> known{"Hold several short rows in registers at once"};
  EXPECT_EQ(find_same_idea("Prefetch the next row while the current row is normalised", known),
            nullptr);
  EXPECT_EQ(find_same_idea("Hold one long row in registers across two passes", known), nullptr);
  EXPECT_EQ(find_same_idea("", known), nullptr);
  EXPECT_EQ(find_same_idea("Anything", {}), nullptr);
}

TEST(IdeaMatch, LikenessIsBetweenNoneAndAll) {
  EXPECT_EQ(likeness("unroll the loop", "Unrolled loops!"), 1);
  EXPECT_EQ(likeness("alpha beta", "gamma delta"), 0);
  EXPECT_EQ(likeness("the of and", "the of and"), 0) << "nothing was said";
}

}  // namespace
}  // namespace kbeam
