#include "base/gzip.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

std::string long_text() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(1L * i * i % 977) + "\n";
  return text;
}

TEST(Gzip, BringsTextBack) {
  for (const std::string& text : {std::string(), std::string("short"), long_text()}) {
    const std::string packed = gzip(text);
    EXPECT_TRUE(is_gzip(packed));
    const auto back = gunzip(packed, "it");
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(*back, text);
  }
  EXPECT_LT(gzip(long_text()).size() * 4, long_text().size());
  EXPECT_EQ(gzip("the same"), gzip("the same"));
}

TEST(Gzip, ReadsSeveralMembers) {
  const auto back = gunzip(gzip("one ") + gzip("two"), "it");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, "one two");
}

TEST(Gzip, RefusesWhatIsDamagedOrTooLong) {
  const std::string packed = gzip(long_text());
  EXPECT_FALSE(gunzip(packed.substr(0, packed.size() / 2), "half").ok());
  std::string changed = packed;
  changed[changed.size() / 2] ^= 1;
  EXPECT_FALSE(gunzip(changed, "changed").ok());
  const auto refused = gunzip(packed, "it", 1000);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("too much"), std::string::npos);
  EXPECT_FALSE(is_gzip("{}"));
  EXPECT_FALSE(gunzip("{}", "plain").ok());
}

}  // namespace
}  // namespace kbeam
