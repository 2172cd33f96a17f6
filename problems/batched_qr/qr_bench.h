// What the tests of this problem share: cases in memory, candidates run in this process, verdicts
// collected. No sandbox and no clock; those have tests of their own.
#pragma once

#include <kbeam/cpu_plan.h>
#include <kbeam/problem.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam::qr_test {

ProblemCode& problem_code();
const Problem& whole_problem();  // with the cases of all targets
const Problem& problem();        // as the CPU sees it

// A case of any shape and family that problem.toml need not have.
Case make_case(std::int64_t batch, std::int64_t m, std::int64_t n, const std::string& family);

// A, H and tau of one case. H and tau are NaN until something writes them.
class CaseMemory {
 public:
  explicit CaseMemory(const Case& the_case);

  std::int64_t m() const { return m_; }
  std::int64_t n() const { return n_; }
  std::int64_t batch() const { return batch_; }
  float* a(std::int64_t matrix) { return a_.data() + matrix * m_ * n_; }
  float* h(std::int64_t matrix) { return h_.data() + matrix * m_ * n_; }
  float* tau(std::int64_t matrix) { return tau_.data() + matrix * std::min(m_, n_); }
  const std::vector<float>& all_of_a() const { return a_; }

  std::vector<TensorView> inputs();
  std::vector<TensorView> outputs();
  void run(kbeam_plan_function* function);

 private:
  TensorView view(const std::string& name);

  std::vector<TensorShape> shapes_;
  AxisValues axes_;
  std::int64_t batch_, m_, n_;
  std::vector<float> a_, h_, tau_;
};

// One candidate of the folder, such as "known_good/unblocked".
class Candidate {
 public:
  explicit Candidate(const std::string& name);
  kbeam_plan_function* plan() const { return plan_; }
  // The words behind `// expect:` and `// needs:`, empty where there are none.
  const std::string& expects() const { return expects_; }
  const std::string& needs() const { return needs_; }

 private:
  kbeam_plan_function* plan_ = nullptr;
  std::string expects_;
  std::string needs_;
};
std::vector<std::string> candidates_in(const std::string& subfolder);

// Everything that one check said.
struct Judgement : CheckSink {
  std::vector<CheckFigure> figures;
  std::string rejection;  // "wrong_value" or "not_finite"
  std::string sentence;

  void figure(std::string_view name, double value, double limit, std::string_view unit,
              std::string_view where) override;
  void reject(CheckFailure failure, std::string_view where, double found, double expected,
              std::string_view words) override;
  std::string verdict() const;
  std::string text() const;
  double worst_excess() const;                // value / limit of the worst figure
  double value(std::string_view name) const;  // of a figure; NaN where it was not reported
};

struct Inspection {
  CheckDepth depth = CheckDepth::full;
  std::string grade = "fp32";
  std::uint64_t secret = 5;
};
Judgement inspect(const Case& the_case, CaseMemory& memory, const Inspection& inspection = {});

// Generates, freshens and runs; the memory then holds what a check would see.
CaseMemory run_case(const Case& the_case, kbeam_plan_function* function);

// The cases of problem.toml, the timed ones with no more matrices than a test can afford.
std::vector<Case> affordable_cases();

}  // namespace kbeam::qr_test
