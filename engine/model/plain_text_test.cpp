#include "model/plain_text.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(OneLine, NothingInItMovesACursor) {
  EXPECT_EQ(one_line("a\nb\tc\r\x1b[31md\x7f"), "a b c  [31md ");
  EXPECT_EQ(one_line("a\xC2\x9B"
                     "31m"),
            "a 31m");
  EXPECT_EQ(one_line("grün \xC2\xA9 \xE2\x86\x92"), "grün \xC2\xA9 \xE2\x86\x92");
  EXPECT_EQ(one_line("\xC2"), "\xC2");
}

TEST(PlainName, IsShortAndOfLettersThatNeedNoQuotes) {
  for (const char* name : {"two_sums", "a-b.cpp", "7"}) EXPECT_TRUE(is_plain_name(name)) << name;
  for (const std::string& name : {std::string(), std::string(".hidden"), std::string("a b"),
                                  std::string("a\nb"), std::string("a/b"), std::string("\x1b[31m"),
                                  std::string("gr\xC3\xBCn"), std::string(65, 'a')})
    EXPECT_FALSE(is_plain_name(name)) << name;
}

}  // namespace
}  // namespace kbeam
