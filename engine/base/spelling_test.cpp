#include "base/spelling.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace kbeam {
namespace {

TEST(Spelling, DistanceCountsSingleEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("family", "family"), 0);
  EXPECT_EQ(edit_distance("famly", "family"), 1);
  EXPECT_EQ(edit_distance("familly", "family"), 1);
  EXPECT_EQ(edit_distance("fomily", "family"), 1);
  EXPECT_EQ(edit_distance("faimly", "family"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(Spelling, DistanceIsSymmetricAndBoundedByTheEditsMade) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string word;
    for (int i = random() % 12; i > 0; --i) word += static_cast<char>('a' + random() % 4);
    std::string other = word;
    const int edits = random() % 4;
    for (int i = 0; i < edits; ++i) {
      const std::size_t at = other.empty() ? 0 : random() % other.size();
      if (other.empty() || random() % 3 == 0)
        other.insert(at, 1, 'z');
      else if (random() % 2)
        other.erase(at, 1);
      else
        other[at] = 'y';
    }
    EXPECT_LE(edit_distance(word, other), edits);
    EXPECT_EQ(edit_distance(word, other), edit_distance(other, word));
  }
}

TEST(Spelling, SuggestsTypingMistakesOnly) {
  const std::vector<std::string> keys{"family",   "category", "text",
                                      "expected", "sketch",   "parents"};
  EXPECT_EQ(closest_word("famly", keys), "family");
  EXPECT_EQ(closest_word("Catagory", keys), "category");
  EXPECT_EQ(closest_word("SKETCH", keys), "sketch");
  EXPECT_EQ(closest_word("parent", keys), "parents");
  EXPECT_EQ(closest_word("tset", keys), std::nullopt);
  EXPECT_EQ(closest_word("txet", keys), "text");
  EXPECT_EQ(closest_word("colour", keys), std::nullopt);
  EXPECT_EQ(closest_word("", keys), std::nullopt);
  EXPECT_EQ(closest_word("x", {}), std::nullopt);
}

TEST(Spelling, ShortWordsAreNotSuggestedForEverything) {
  const std::vector<std::string> words{"m", "n", "k"};
  EXPECT_EQ(closest_word("q", words), std::nullopt);
  EXPECT_EQ(closest_word("N", words), "n");
  EXPECT_EQ(closest_word("nn", words), "n");
}

TEST(Spelling, TheFirstOfEqualsWins) {
  const std::vector<std::string> words{"abcd", "abce"};
  EXPECT_EQ(closest_word("abcf", words), "abcd");
}

}  // namespace
}  // namespace kbeam
