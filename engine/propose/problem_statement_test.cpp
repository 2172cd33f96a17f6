#include "propose/problem_statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProblemStatement, NothingOfPrivateCasesButThatTheyAre) {
  Problem problem;
  problem.name = "sum";
  problem.folder = "/nowhere";  // no README
  problem.families = {{.name = "dense", .text = "numbers of one size"},
                      {.name = "steep", .text = "numbers of all sizes"},
                      {.name = "nobodys", .text = "numbers that no case has"}};
  problem.cases = {{.name = "c64", .axes = {{"n", 64}}, .family = "dense"},
                   {.name = "hidden77", .axes = {{"n", 77}}, .family = "dense"},
                   {.name = "hidden99", .axes = {{"n", 99}}, .family = "steep"}};
  problem.cases[1].pool = problem.cases[2].pool = Pool::private_pool;
  const std::string text = problem_statement(problem);
  EXPECT_THAT(text, HasSubstr("- dense: numbers of one size"));
  EXPECT_THAT(text, HasSubstr("`c64`"));
  EXPECT_THAT(text, HasSubstr("private cases"));
  for (const char* const secret : {"steep", "all sizes", "nobodys", "hidden", "77", "99"})
    EXPECT_THAT(text, Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace kbeam
