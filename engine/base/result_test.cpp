#include "base/result.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

namespace kbeam {
namespace {

const Error kLocked{ErrorCode::busy, "open archive a.sqlite", "it is locked", "wait"};

Result<int> half_of(int number) {
  if (number % 2 != 0)
    return Error{ErrorCode::bad_input, "halve " + std::to_string(number), "it is odd", ""};
  return number / 2;
}

Result<int> quarter_of(int number) {
  ASSIGN_OR_RETURN(const int half, half_of(number));
  ASSIGN_OR_RETURN(const int quarter, half_of(half));
  return quarter;
}

Result<void> require_even(int number) {
  RETURN_IF_ERROR(half_of(number));
  return {};
}

TEST(Result, error_text_says_attempt_happening_and_advice) {
  EXPECT_EQ(kLocked.text(), "could not open archive a.sqlite: it is locked\n  what to do: wait");
  EXPECT_EQ(half_of(3).error().text(), "could not halve 3: it is odd");
}

TEST(Result, assign_or_return_hands_values_and_errors_on) {
  EXPECT_EQ(*quarter_of(12), 3);
  ASSERT_FALSE(quarter_of(6).ok());
  EXPECT_EQ(quarter_of(6).error().attempted, "halve 3");
}

TEST(Result, return_if_error_works_for_void) {
  EXPECT_TRUE(require_even(2).ok());
  ASSERT_FALSE(require_even(1).ok());
  EXPECT_EQ(require_even(1).error().code, ErrorCode::bad_input);
}

TEST(Result, holds_what_can_only_move) {
  Result<std::unique_ptr<int>> owner(std::make_unique<int>(5));
  const std::unique_ptr<int> taken = std::move(owner).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, what_is_taken_from_a_temporary_outlives_it) {
  const auto letters = [] {
    return Result<std::vector<std::string>>({std::string(64, 'a'), std::string(64, 'b')});
  };
  std::string seen;
  for (const std::string& letter : letters().value()) seen += letter;
  for (const std::string& letter : *letters()) seen += letter;
  EXPECT_EQ(seen, std::string(64, 'a') + std::string(64, 'b') + std::string(64, 'a') +
                      std::string(64, 'b'));
}

TEST(ResultDeathTest, value_of_a_failed_result_ends_the_process) {
  const Result<int> failed(kLocked);
  EXPECT_DEATH(static_cast<void>(failed.value()), "test ok\\(\\) first");
}

}  // namespace
}  // namespace kbeam
