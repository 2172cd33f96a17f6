#include "base/hash.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(Hash, is_sha256_over_length_prefixed_fields) {
  // printf '3:abc' | sha256sum
  EXPECT_EQ(sha256_hex("abc"), "aab5f9ae99b2e38fb462025c8f72f570c9c811705d2a4277dc855d7fa293fe97");
  EXPECT_EQ(Hasher().field("abc").hex(), sha256_hex("abc"));
}

TEST(Hash, field_borders_count) {
  EXPECT_NE(Hasher().field("ab").field("c").hex(), Hasher().field("a").field("bc").hex());
  EXPECT_NE(Hasher().field("").field("a").hex(), Hasher().field("a").field("").hex());
  EXPECT_NE(Hasher().field("a").hex(), Hasher().field("a").field("").hex());
}

TEST(Hash, a_number_is_its_decimal_text) {
  EXPECT_EQ(Hasher().field(-12).hex(), Hasher().field("-12").hex());
}

TEST(Hash, bytes_may_be_anything) {
  const std::string zeros("\0\0", 2);
  EXPECT_EQ(sha256_hex(zeros).size(), 64u);
  EXPECT_NE(sha256_hex(zeros), sha256_hex(std::string("\0", 1)));
}

// RFC 4231, test case 2.
TEST(Hash, hmac_is_the_standard_one) {
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(hmac_sha256_hex("jefe", "what do ya want for nothing?"),
            hmac_sha256_hex("Jefe", "what do ya want for nothing?"));
}

}  // namespace
}  // namespace kbeam
