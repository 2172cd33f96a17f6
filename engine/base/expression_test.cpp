#include "base/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Names = std::map<std::string, std::int64_t>;

std::int64_t value_of(std::string_view text, const Names& names = {}) {
  const auto value = evaluate_expression(text, names);
  EXPECT_TRUE(value.ok()) << text << ": " << (value.ok() ? "" : value.error().text());
  return value.ok() ? *value : -999;
}

std::string error_of(std::string_view text, const Names& names = {}) {
  const auto value = evaluate_expression(text, names);
  EXPECT_FALSE(value.ok()) << text << " gave a value";
  return value.ok() ? "" : value.error().text();
}

// The compiler is the oracle: the same tokens as C++ and as text.
#define EXPECT_LIKE_CPP(...) \
  EXPECT_EQ(value_of(#__VA_ARGS__), static_cast<std::int64_t>(__VA_ARGS__)) << #__VA_ARGS__

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#if !defined(__clang__)  // which has no such warning
#pragma GCC diagnostic ignored "-Wbool-compare"
#endif
TEST(Expression, AgreesWithTheCompiler) {
  EXPECT_LIKE_CPP(2 + 3 * 4 - 6 / 2 % 2);
  EXPECT_LIKE_CPP(-7 / 2);
  EXPECT_LIKE_CPP(-7 % 3);
  EXPECT_LIKE_CPP(10 - 4 - 3);
  EXPECT_LIKE_CPP(100 / 5 / 2);
  EXPECT_LIKE_CPP(1 << 2 + 3);
  EXPECT_LIKE_CPP(-256 >> 4);
  EXPECT_LIKE_CPP(1 | 6 ^ 3 & 5);
  EXPECT_LIKE_CPP((64 & 63) == 0 && 64 <= 128);
  EXPECT_LIKE_CPP(1 < 2 == 2 > 1);
  EXPECT_LIKE_CPP(5 > 4 > 3);
  EXPECT_LIKE_CPP(1 || 0 && 0);
  EXPECT_LIKE_CPP(!3 + !0);
  EXPECT_LIKE_CPP(- -5 + ~0 - +2);
  EXPECT_LIKE_CPP(0 ? 1 : 2 ? 3 : 4);
  EXPECT_LIKE_CPP(1 ? 0 ? 7 : 8 : 9);
  EXPECT_LIKE_CPP(true + true != false);
  EXPECT_LIKE_CPP(0x1F + 0b101 + 017 + 1'000 + 5L + 6ll);
  EXPECT_LIKE_CPP(9223372036854775807);
}
#pragma GCC diagnostic pop

TEST(Expression, NamesMinAndMax) {
  const Names names{{"m", 40}, {"n", 16}, {"kbeam::kNativeFloats", 8}};
  EXPECT_EQ(value_of("min(m, n)", names), 16);
  EXPECT_EQ(value_of("max(m, n, 100) - std::min(3, std::max(1, 2))", names), 98);
  EXPECT_EQ(value_of("n % kbeam::kNativeFloats == 0", names), 1);
  EXPECT_EQ(value_of("m*n", names), 640);
}

TEST(Expression, ShortCircuitSkipsFailuresButNotUnknownNames) {
  EXPECT_EQ(value_of("0 && 1 / 0"), 0);
  EXPECT_EQ(value_of("1 || 1 % 0"), 1);
  EXPECT_EQ(value_of("1 ? 5 : 1 / 0"), 5);
  EXPECT_EQ(value_of("0 ? 1 / 0 : 6"), 6);
  EXPECT_EQ(value_of("0 && (1 / 0 || 1 << 99)"), 0);
  EXPECT_THAT(error_of("1 && 1 / 0"), HasSubstr("division by zero at character 8"));
  EXPECT_THAT(error_of("(0 && 1 / 0) || 1 / 0"), HasSubstr("division by zero"));
  EXPECT_THAT(error_of("0 && kMissing"), HasSubstr("unknown name 'kMissing'"));
}

TEST(Expression, ErrorsSayWhatAndWhere) {
  EXPECT_THAT(error_of("kPanle + 1", {{"kPanel", 3}}), HasSubstr("did you mean 'kPanel'?"));
  EXPECT_THAT(error_of("1 +"), HasSubstr("found the end"));
  EXPECT_THAT(error_of(""), HasSubstr("expected a value but found the end at character 1"));
  EXPECT_THAT(error_of("(1 + 2"), HasSubstr("expected ')'"));
  EXPECT_THAT(error_of("1 2"), HasSubstr("unexpected '2' at character 3"));
  EXPECT_THAT(error_of("1.5"), HasSubstr("'1.5' is no 64-bit integer"));
  EXPECT_THAT(error_of("12x"), HasSubstr("'12x'"));
  EXPECT_THAT(error_of("08"), HasSubstr("'08'"));
  EXPECT_THAT(error_of("0x"), HasSubstr("'0x'"));
  EXPECT_THAT(error_of("3u"), HasSubstr("'3u'"));
  EXPECT_THAT(error_of("9223372036854775808"), HasSubstr("no 64-bit integer"));
  EXPECT_THAT(error_of("min(1)"), HasSubstr("takes two values or more"));
  EXPECT_THAT(error_of("min()"), HasSubstr("unexpected ')'"));
  EXPECT_THAT(error_of("1 ? 2"), HasSubstr("expected ':'"));
  EXPECT_THAT(error_of("9223372036854775807 + 1"), HasSubstr("overflow"));
  EXPECT_THAT(error_of("-(-9223372036854775807 - 1)"), HasSubstr("overflow"));
  EXPECT_THAT(error_of("(-9223372036854775807 - 1) / -1"), HasSubstr("overflow"));
  EXPECT_THAT(error_of("(-9223372036854775807 - 1) % -1"), HasSubstr("overflow"));
  EXPECT_THAT(error_of("1 << 63"), HasSubstr("a shift by 63"));
  EXPECT_THAT(error_of("a = 1", {{"a", 1}}), HasSubstr("unexpected '='"));
  EXPECT_THAT(error_of("sizeof(float)"), HasSubstr("unknown name 'sizeof'"));
}

TEST(Expression, DeepNestingIsAnErrorAndNotACrash) {
  EXPECT_EQ(value_of(std::string(100, '(') + "7" + std::string(100, ')')), 7);
  EXPECT_THAT(error_of(std::string(100000, '(')), HasSubstr("nesting"));
  EXPECT_THAT(error_of(std::string(100000, '-')), HasSubstr("nesting"));
}

TEST(Expression, NamesOnceInOrder) {
  EXPECT_THAT(names_in_expression("kB * min(kA, kB) + ns::kC + true - std::max(3, kA) +* ("),
              ElementsAre("kB", "kA", "ns::kC"));
  EXPECT_THAT(names_in_expression("sizeof(float) * 4"), ElementsAre("sizeof", "float"));
  EXPECT_THAT(names_in_expression("1 + 2"), ElementsAre());
}

// A random tree, its value by definition, and two spellings: all parentheses, and only those that
// are needed.
struct Tree {
  std::string operation;  // empty: a leaf
  std::string leaf;
  std::unique_ptr<Tree> left, right;
};

const std::vector<std::pair<std::string, int>> kOperations = {
    {"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4}, {"&", 5}, {"==", 6}, {"!=", 6}, {"<", 7},
    {"<=", 7}, {">", 7},  {">=", 7}, {"+", 9}, {"-", 9}, {"*", 10}, {"/", 10}, {"%", 10}};

int precedence(const std::string& operation) {
  for (const auto& [name, value] : kOperations)
    if (name == operation) return value;
  return 99;
}

std::unique_ptr<Tree> random_tree(std::mt19937& random, int depth) {
  auto tree = std::make_unique<Tree>();
  if (depth == 0 || random() % 5 == 0) {
    static const char* kLeaves[] = {"0", "1", "2", "7", "a", "b"};
    tree->leaf = kLeaves[random() % 6];
    return tree;
  }
  tree->operation = kOperations[random() % kOperations.size()].first;
  tree->left = random_tree(random, depth - 1);
  tree->right = random_tree(random, depth - 1);
  return tree;
}

std::optional<std::int64_t> meaning(const Tree& tree, const Names& names) {
  if (tree.operation.empty())
    return std::isalpha(tree.leaf[0]) ? names.at(tree.leaf) : std::stoll(tree.leaf);
  const auto left = meaning(*tree.left, names);
  if (!left) return std::nullopt;
  const std::string& o = tree.operation;
  if (o == "&&" && *left == 0) return 0;
  if (o == "||" && *left != 0) return 1;
  const auto right = meaning(*tree.right, names);
  if (!right) return std::nullopt;
  const std::int64_t x = *left, y = *right;
  if (o == "&&" || o == "||") return y != 0;
  if ((o == "/" || o == "%") && y == 0) return std::nullopt;
  if (o == "|") return x | y;
  if (o == "^") return x ^ y;
  if (o == "&") return x & y;
  if (o == "==") return x == y;
  if (o == "!=") return x != y;
  if (o == "<") return x < y;
  if (o == "<=") return x <= y;
  if (o == ">") return x > y;
  if (o == ">=") return x >= y;
  if (o == "+") return x + y;
  if (o == "-") return x - y;
  if (o == "*") return x * y;
  return o == "/" ? x / y : x % y;
}

std::string full_text(const Tree& tree) {
  if (tree.operation.empty()) return tree.leaf;
  return "(" + full_text(*tree.left) + tree.operation + full_text(*tree.right) + ")";
}

std::string short_text(const Tree& tree) {
  if (tree.operation.empty()) return tree.leaf;
  const int own = precedence(tree.operation);
  std::string left = short_text(*tree.left), right = short_text(*tree.right);
  if (precedence(tree.left->operation) < own) left = "(" + left + ")";
  if (precedence(tree.right->operation) <= own) right = "(" + right + ")";
  return left + " " + tree.operation + " " + right;
}

TEST(Expression, RandomTreesMeanTheSameInBothSpellings) {
  const Names names{{"a", 5}, {"b", -3}};
  int valued = 0;
  for (int seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    const auto tree = random_tree(random, 5);
    const auto expected = meaning(*tree, names);
    for (const std::string& text : {full_text(*tree), short_text(*tree)}) {
      const auto found = evaluate_expression(text, names);
      ASSERT_EQ(found.ok(), expected.has_value()) << text;
      if (expected) {
        ASSERT_EQ(*found, *expected) << text;
      }
    }
    valued += expected.has_value();
  }
  EXPECT_GT(valued, 1000);
}

TEST(Expression, RandomTextNeverCrashes) {
  const std::string letters = "ab01 +-*/%()<>=!&|?:,~^minmax_'.x";
  for (int seed = 0; seed < 20000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = random() % 24; i > 0; --i) text += letters[random() % letters.size()];
    const auto value = evaluate_expression(text, {{"a", 1}, {"b", 2}});
    if (!value.ok()) {
      EXPECT_THAT(value.error().text(), HasSubstr(" at character ")) << text;
    }
  }
}

}  // namespace
}  // namespace kbeam
