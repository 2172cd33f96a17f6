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

// Two characters a value here, sixteen bytes and more each once it is parsed.
TEST(ForeignJson, ValuesAreBounded) {
  const auto zeros = [](int count) {
    std::string text = "[0";
    for (int i = 1; i < count; ++i) text += ",0";
    return text + ']';
  };
  EXPECT_EQ(parse_foreign_json(zeros(100'000)).size(), 100'000U);
  EXPECT_TRUE(parse_foreign_json(zeros(kMostForeignValues)).is_discarded());
  std::string lists = "[[]";
  for (int i = 0; i < kMostForeignValues / 2; ++i) lists += ",[]";
  EXPECT_TRUE(parse_foreign_json(lists + ']').is_discarded());
  const std::string commas(static_cast<std::size_t>(kMostForeignValues) + 10, ',');
  EXPECT_EQ(parse_foreign_json('"' + commas + '"'), commas);
}

TEST(ForeignJson, BracketsInTextsAreText) {
  const std::string text(10'000, '{');
  EXPECT_EQ(parse_foreign_json("\"\\\"" + text + '"'), "\"" + text);
  EXPECT_TRUE(parse_foreign_json("no JSON").is_discarded());
}

}  // namespace
}  // namespace kbeam
