#include "report/source_diff.h"

#include <gtest/gtest.h>

#include <random>

namespace kbeam {
namespace {

std::string shown(const SourceDiff& diff) {
  std::string text;
  for (const DiffLine& line : diff.lines) text += line.sign + std::string(line.text) + "\n";
  return text;
}

TEST(SourceDiff, OfEqualSourcesIsEmpty) {
  const SourceDiff diff = diff_sources("a\nb\n", "a\nb\n");
  EXPECT_TRUE(diff.lines.empty());
  EXPECT_EQ(diff.added + diff.removed, 0);
}

TEST(SourceDiff, ShowsAChangeWithThreeLinesAroundIt) {
  const SourceDiff diff =
      diff_sources("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
  EXPECT_EQ(shown(diff), "@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@\n");
  EXPECT_EQ(diff.added, 1);
  EXPECT_EQ(diff.removed, 1);
}

TEST(SourceDiff, FromAndToNothing) {
  EXPECT_EQ(shown(diff_sources("", "x\ny")), "+x\n+y\n");
  EXPECT_EQ(shown(diff_sources("x\ny\n", "")), "-x\n-y\n");
  EXPECT_TRUE(diff_sources("", "").lines.empty());
}

// Context, kept and removed lines are the old text; context, kept and added lines the new one.
TEST(SourceDiff, BothTextsCanBeReadOffIt) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::string before, after;
    // At most seven lines: all of them are near a change, or nothing changed.
    for (int i = static_cast<int>(random() % 4); i > 0; --i)
      before += "abc"[random() % 3] + std::string("\n");
    for (int i = static_cast<int>(random() % 4); i > 0; --i)
      after += "abc"[random() % 3] + std::string("\n");
    const SourceDiff diff = diff_sources(before, after);
    std::string old_text, new_text;
    for (const DiffLine& line : diff.lines) {
      ASSERT_NE(line.sign, '@');
      if (line.sign != '+') old_text += std::string(line.text) + "\n";
      if (line.sign != '-') new_text += std::string(line.text) + "\n";
    }
    if (before == after) continue;
    EXPECT_EQ(old_text, before);
    EXPECT_EQ(new_text, after);
  }
}

TEST(SourceDiff, OfHugeSourcesThatShareNothingIsAReplacement) {
  std::string before, after;
  for (int i = 0; i < 5000; ++i) {
    before += "a" + std::to_string(i) + "\n";
    after += "b" + std::to_string(i) + "\n";
  }
  const SourceDiff diff = diff_sources(before, after);
  EXPECT_EQ(diff.added, 5000);
  EXPECT_EQ(diff.removed, 5000);
}

}  // namespace
}  // namespace kbeam
