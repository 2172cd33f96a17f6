#include "base/shown_text.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(ShownLine, TextStaysAsItIs) {
  EXPECT_EQ(shown_line(""), "");
  EXPECT_EQ(shown_line("case large: 3 µs ≤ 4 µs"), "case large: 3 µs ≤ 4 µs");
  EXPECT_EQ(shown_line("\xc2\xa0 \xff"), "\xc2\xa0 \xff");
}

TEST(ShownLine, ControlCharactersBecomeSpaces) {
  EXPECT_EQ(shown_line("a\nb\tc\rd"), "a b c d");
  EXPECT_EQ(shown_line("\x1b[2J\x07\x7f"), " [2J  ");
  EXPECT_EQ(shown_line("\xc2\x9b"
                       "0m"),
            "  0m");
  EXPECT_EQ(shown_line(std::string_view("a\0b", 3)), "a b");
}

TEST(ShownLine, LongTextEndsAtACharacter) {
  EXPECT_EQ(shown_line("abcdef", 3), "abc...");
  EXPECT_EQ(shown_line("ab\xc2\xb5", 3), "ab...");
  EXPECT_EQ(shown_line("ab\xc2\xb5z", 4), "ab\xc2\xb5...");
  EXPECT_EQ(shown_line("abc", 3), "abc");
}

}  // namespace
}  // namespace kbeam
