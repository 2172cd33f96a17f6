// Foreign text cannot change a page, and numbers read the same everywhere.
#include "report/text.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kbeam {
namespace {

TEST(Escaping, HtmlHasNoMarkupLeft) {
  EXPECT_EQ(escape_html("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
}

TEST(Escaping, JsonCannotEndItsScript) {
  EXPECT_EQ(escape_json_for_script(R"({"a":"</script><!--"})"),
            R"({"a":"\u003c/script>\u003c!--"})");
}

TEST(Escaping, MarkdownStaysOneCell) {
  EXPECT_EQ(escape_markdown("a|b\n# *c* <d> `e`"), "a\\|b \\# \\*c\\* \\<d\\> \\`e\\`");
  EXPECT_EQ(markdown_code("a|b`c\n"), "`a\\|b'c `");
  EXPECT_EQ(markdown_code(""), "-");
}

TEST(Formats, RatiosKeepThreeDigits) {
  EXPECT_EQ(format_ratio(4.6149), "4.61");
  EXPECT_EQ(format_ratio(9.996), "10.0");
  EXPECT_EQ(format_ratio(12.34), "12.3");
  EXPECT_EQ(format_ratio(123.4), "123");
  EXPECT_EQ(format_ratio(std::nan("")), "-");
  EXPECT_EQ(format_ratio(HUGE_VAL), "inf");
  EXPECT_EQ(format_interval(1.5, 1.6), "1.50 to 1.60");
  EXPECT_EQ(format_interval(-HUGE_VAL, HUGE_VAL), "-inf to inf");
  EXPECT_EQ(format_interval(std::nan(""), std::nan("")), "-");
}

TEST(Formats, TimesChooseTheirUnit) {
  EXPECT_EQ(format_time_ns(812), "812 ns");
  EXPECT_EQ(format_time_ns(999.7), "1.00 us");
  EXPECT_EQ(format_time_ns(1.234e6), "1.23 ms");
  EXPECT_EQ(format_time_ns(45.6e9), "45.6 s");
  EXPECT_EQ(format_time_ns(std::nan("")), "-");
  EXPECT_EQ(format_time_s(0.42), "0.4 s");
  EXPECT_EQ(format_time_s(192), "3 min 12 s");
  EXPECT_EQ(format_time_s(7500), "2 h 5 min");
  EXPECT_EQ(format_date(1'767'225'600'000), "2026-01-01 00:00 UTC");
}

TEST(Shorten, KeepsShortTextAndNeverHalfACharacter) {
  EXPECT_EQ(shorten("short", 5), "short");
  EXPECT_EQ(shorten("longer", 3), "lon…");
  EXPECT_EQ(shorten("a\u00e9b", 2), "a…");  // the second byte begins in the middle of é
  EXPECT_EQ(shorten("", 0), "");
}

TEST(FillSlots, PutsTextInItsPlaceAndLeavesWhatLooksLikeASlot) {
  EXPECT_EQ(fill_slots("a {{x}} {{y}}", {{"x", "{{y}}"}, {"y", "2"}}), "a {{y}} 2");
}

}  // namespace
}  // namespace kbeam
