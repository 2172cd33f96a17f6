// Which cases a gate takes. What the gates find is shown by the attack corpus (stage promote).
#include "session/cpu_gates.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

Case make_case(const std::string& name, std::int64_t n, const std::string& family = "normal") {
  return {.name = name, .axes = {{"n", n}}, .family = family};
}

Problem vector_problem() {
  Problem problem;
  problem.axes = {{.name = "n", .least = 1, .most = 1 << 30}};
  problem.regime_axis = "n";
  problem.tensors = {{.name = "x", .role = KBEAM_INPUT, .shape = {"n"}, .memory_order = {"n"}}};
  return problem;
}

std::vector<std::string> chosen_of(const std::vector<Row>& rows, const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& one : choose_gate_cases(vector_problem(), {.rows = rows}, cases))
    names.push_back(one.name);
  return names;
}

TEST(ChooseGateCases, OneOfEachSmallShape) {
  EXPECT_EQ(chosen_of({Row{}}, {make_case("large", 1 << 24), make_case("b", 40), make_case("a", 7),
                                make_case("b_again", 40, "zero")}),
            (std::vector<std::string>{"a", "b"}));
}

TEST(ChooseGateCases, ARowWithLargeCasesAloneBringsItsSmallest) {
  const std::vector<Row> rows = {{.axis_least = 0, .axis_most = 999},
                                 {.axis_least = 1000, .axis_most = INT64_MAX}};
  EXPECT_EQ(chosen_of(rows, {make_case("larger", 1 << 24), make_case("a", 7),
                             make_case("large", 1 << 23)}),
            (std::vector<std::string>{"a", "large"}));
}

}  // namespace
}  // namespace kbeam
