#include "check/case_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace kbeam {
namespace {

class FakeCase final : public CaseView {
 public:
  std::string_view name() const override { return "small"; }
  std::string_view family() const override { return "dense"; }
  std::int64_t axis(std::string_view) const override { return 1; }
};

class FakeProblem final : public ProblemCode {
 public:
  explicit FakeProblem(std::function<void(CheckSink&)> check) : check_(std::move(check)) {}
  void generate(const CaseView&, std::uint64_t, std::span<const TensorView>) override {}
  void freshen(const CaseView&, std::uint64_t, std::span<const TensorView>,
               std::span<const TensorView>) override {}
  void check(const CaseView&, const CheckRequest&, std::span<const TensorView>,
             std::span<const TensorView>, CheckSink& sink) override {
    check_(sink);
  }
  double flops(const CaseView&) override { return 1; }
  double bytes(const CaseView&) override { return 1; }

 private:
  std::function<void(CheckSink&)> check_;
};

CheckReport report_of(std::function<void(CheckSink&)> check) {
  FakeProblem problem(std::move(check));
  return check_outputs(problem, FakeCase(), {.grade = "fp32"}, {}, {});
}

TEST(CheckOutputs, AcceptsAFigureAtItsLimit) {
  const CheckReport report =
      report_of([](CheckSink& sink) { sink.figure("residual", 4, 4, "eps", "matrix 0"); });
  EXPECT_EQ(report.verdict, Verdict::accepted);
  ASSERT_EQ(report.figures.size(), 1u);
  EXPECT_EQ(report.figures[0].value, 4);
}

TEST(CheckOutputs, RejectsAFigureAboveItsLimitAndSaysWhere) {
  const CheckReport report = report_of(
      [](CheckSink& sink) { sink.figure("residual", 5, 4, "eps", "matrix 3, column 7"); });
  EXPECT_EQ(report.verdict, Verdict::wrong_value);
  EXPECT_EQ(report.sentence, "matrix 3, column 7: residual is 5 eps, the limit is 4");
}

TEST(CheckOutputs, NeverLetsANanPass) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      report_of([&](CheckSink& sink) { sink.figure("residual", nan, 4, "eps", "here"); }).verdict,
      Verdict::not_finite);
  EXPECT_NE(
      report_of([&](CheckSink& sink) { sink.figure("residual", 1, nan, "eps", "here"); }).verdict,
      Verdict::accepted);
}

TEST(CheckOutputs, TreatsASilentCheckAsOurFault) {
  EXPECT_EQ(report_of([](CheckSink&) {}).verdict, Verdict::engine_failed);
}

TEST(CheckOutputs, KeepsTheFirstFailure) {
  const CheckReport report = report_of([](CheckSink& sink) {
    sink.reject(CheckFailure::wrong_value, "row 1", 2, 3, "not the sum");
    sink.reject(CheckFailure::not_finite, "row 2", 2, 3, "later");
  });
  EXPECT_EQ(report.verdict, Verdict::wrong_value);
  EXPECT_EQ(report.sentence, "row 1: not the sum (found 2, expected 3)");
}

TEST(MergeReports, KeepsTheWorstFigureOfEachNameAndCountsOutputs) {
  CheckReport all =
      report_of([](CheckSink& sink) { sink.figure("residual", 1, 4, "eps", "first"); });
  merge_reports(all,
                report_of([](CheckSink& sink) { sink.figure("residual", 3, 4, "eps", "second"); }));
  merge_reports(all,
                report_of([](CheckSink& sink) { sink.figure("residual", 2, 4, "eps", "third"); }));
  EXPECT_EQ(all.outputs_checked, 3);
  ASSERT_EQ(all.figures.size(), 1u);
  EXPECT_EQ(all.figures[0].where, "second");
  EXPECT_EQ(all.verdict, Verdict::accepted);
}

TEST(MergeReports, OneBadOutputAmongManyRejectsTheCase) {
  CheckReport all =
      report_of([](CheckSink& sink) { sink.figure("residual", 1, 4, "eps", "first"); });
  merge_reports(all,
                report_of([](CheckSink& sink) { sink.figure("residual", 9, 4, "eps", "second"); }));
  merge_reports(all,
                report_of([](CheckSink& sink) { sink.figure("residual", 1, 4, "eps", "third"); }));
  EXPECT_EQ(all.verdict, Verdict::wrong_value);
}

}  // namespace
}  // namespace kbeam
