#include "execute/sealed_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

using testing::HasSubstr;

const Seal kSeal{"kbeam test 1", "00ff00ff"};

TEST(SealedText, GivesBackTheVeryBytes) {
  const std::string body = R"({"a":"b\"c","d":[1,2.5]})";
  const auto opened = open_sealed(kSeal, seal_text(kSeal, body), "it");
  ASSERT_TRUE(opened.ok()) << opened.error().text();
  EXPECT_EQ(*opened, body);
}

TEST(SealedText, RefusesEveryChangedByte) {
  const std::string text = seal_text(kSeal, R"({"a":1,"b":"two"})");
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const unsigned flip : {1U, 0x20U, 0x80U}) {
      std::string changed = text;
      changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ flip);
      EXPECT_FALSE(open_sealed(kSeal, changed, "it").ok()) << "byte " << i << ": " << changed;
    }
}

TEST(SealedText, RefusesEveryTruncation) {
  const std::string text = seal_text(kSeal, R"({"a":1})");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(open_sealed(kSeal, text.substr(0, size), "it").ok()) << size;
  EXPECT_THAT(open_sealed(kSeal, text.substr(0, text.size() - 1), "it").error().happened,
              HasSubstr("truncated"));
  EXPECT_THAT(open_sealed(kSeal, "", "it").error().happened, HasSubstr("truncated"));
}

TEST(SealedText, NamesWhatIsWrong) {
  const std::string body = R"({"a":1})";
  EXPECT_THAT(
      open_sealed(kSeal, seal_text({"kbeam other 1", kSeal.key}, body), "it").error().happened,
      HasSubstr("does not begin as"));
  EXPECT_THAT(open_sealed(kSeal, seal_text({kSeal.format, "11"}, body), "it").error().happened,
              HasSubstr("changed"));
  EXPECT_THAT(open_sealed(kSeal,
                          R"({"format":"kbeam test 1","seal":"","body":{"a":1}})"
                          "\n",
                          "it")
                  .error()
                  .happened,
              HasSubstr("unsealed"));
}

TEST(SealedText, AKeyedSealIsNoPlainHash) {
  const std::string plain = seal_text({kSeal.format, ""}, "{}");
  EXPECT_FALSE(open_sealed(kSeal, plain, "it").ok());
  EXPECT_TRUE(open_sealed({kSeal.format, ""}, plain, "it").ok());
}

}  // namespace
}  // namespace kbeam
