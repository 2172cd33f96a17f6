#include "check/case_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/defence.h"

namespace kbeam {
namespace {

class ReportSink final : public CheckSink {
 public:
  explicit ReportSink(CheckReport& report) : report_(report) {}

  void figure(std::string_view name, double value, double limit, std::string_view unit,
              std::string_view where) override {
    const CheckFigure figure{std::string(name), value, limit, std::string(unit),
                             std::string(where)};
    const bool passed =
        defence_is_on(Defence::nan_fails_closed) ? figure.passed() : !(value > limit);
    if (!passed)
      fail(std::isnan(value) ? Verdict::not_finite : Verdict::wrong_value,
           fmt::format("{}: {} is {:.4g} {}, the limit is {:.4g}", figure.where, figure.name, value,
                       figure.unit, limit));
    report_.figures.push_back(figure);
  }

  void reject(CheckFailure failure, std::string_view where, double found, double expected,
              std::string_view sentence) override {
    rejected_ = true;
    fail(failure == CheckFailure::not_finite ? Verdict::not_finite : Verdict::wrong_value,
         fmt::format("{}: {} (found {:.9g}, expected {:.9g})", where, sentence, found, expected));
  }

  bool said_something() const { return rejected_ || !report_.figures.empty(); }

 private:
  void fail(Verdict verdict, std::string sentence) {
    if (report_.verdict != Verdict::accepted) return;  // the first failure explains best
    report_.verdict = verdict;
    report_.sentence = std::move(sentence);
  }

  CheckReport& report_;
  bool rejected_ = false;
};

// NaN counts as the worst: it compares false with everything.
bool is_worse(const CheckFigure& a, const CheckFigure& b) {
  return !(a.value / a.limit <= b.value / b.limit);
}

}  // namespace

CheckReport check_outputs(ProblemCode& problem, const CaseView& the_case,
                          const CheckRequest& request, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs) {
  CheckReport report;
  report.case_name = std::string(the_case.name());
  report.grade = std::string(request.grade);
  report.verdict = Verdict::accepted;
  ReportSink sink(report);
  problem.check(the_case, request, inputs, outputs, sink);
  report.outputs_checked = 1;
  if (!sink.said_something()) {
    report.verdict = Verdict::engine_failed;
    report.sentence =
        "the problem's check reported no figure; every check must report what it measured";
  }
  return report;
}

void merge_reports(CheckReport& into, const CheckReport& more) {
  if (into.outputs_checked == 0) {
    into = more;
    return;
  }
  into.outputs_checked += more.outputs_checked;
  if (into.verdict == Verdict::accepted && more.verdict != Verdict::accepted) {
    into.verdict = more.verdict;
    into.sentence = more.sentence;
    into.seed = more.seed;
    into.key = more.key;
  }
  for (const CheckFigure& figure : more.figures) {
    const auto same =
        std::find_if(into.figures.begin(), into.figures.end(),
                     [&](const CheckFigure& known) { return known.name == figure.name; });
    if (same == into.figures.end())
      into.figures.push_back(figure);
    else if (is_worse(figure, *same))
      *same = figure;
  }
}

}  // namespace kbeam
