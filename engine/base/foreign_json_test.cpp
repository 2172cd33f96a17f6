#include "base/foreign_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace kbeam {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(ForeignJson, DepthIsBounded) {
  EXPECT_TRUE(parse_foreign_json(nested(kDeepestForeignJson)).is_array());
  EXPECT_TRUE(parse_foreign_json(nested(kDeepestForeignJson + 1)).is_discarded());
  EXPECT_TRUE(parse_foreign_json(nested(4 << 20)).is_discarded());
}

TEST(ForeignJson, BracketsInTextsAreText) {
  const std::string text(10'000, '{');
  EXPECT_EQ(parse_foreign_json("\"\\\"" + text + '"'), "\"" + text);
  EXPECT_TRUE(parse_foreign_json("no JSON").is_discarded());
}

}  // namespace
}  // namespace kbeam
