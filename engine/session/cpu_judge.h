// The judge of CPU candidates: sandboxed processes that are stopped except while they are timed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "measure/comparison_course.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "model/watch.h"
#include "session/bench_process.h"
#include "session/input_bank.h"
#include "session/judge.h"

namespace kbeam {

struct JudgeOptions {
  std::filesystem::path runner;
  std::vector<int> candidate_cpus{
      1};  // all that may be used; a measurement on t threads takes the first t
  SandboxLevel least_sandbox = SandboxLevel::none;  // enough to check, never to promote
  std::string grade;
  std::uint64_t seed = 0;
  double call_timeout_s = 10;
  std::optional<std::uint64_t> fixed_key;  // replays one recorded input in check()
  // Longest that the checks and measurements of one screen may take before it counts as timed_out.
  double screen_timeout_s = 600;
  // Asked between calls: true ends the evaluation as engine_failed, to be made again another time.
  std::function<bool()> give_up;
  std::function<void(const std::string& holder)> on_lock_wait;
  // Builds a row so that a sanitizer watches it: without this a promotion has no sanitizer gates,
  // and says so.
  std::function<Result<WatchedBuild>(const Row&, Watch)> build_watched;
};

class CpuJudge final : public Judge {
 public:
  CpuJudge(const Problem& problem, ProblemCode& code, JudgeOptions options, const Clock& clock);

  Evaluation check(const Subject& subject, const std::vector<Case>& cases) override;
  // Fresh processes on both sides. Base inputs are kept from one screen to the next.
  Evaluation screen(const Subject& candidate, const Subject& reference,
                    const std::vector<Case>& check_cases,
                    const std::vector<Case>& timed_cases) override;
  Evaluation compare(const CompareRequest& request) override;
  std::map<std::string, Outcome<CeilingTime>> time_trusted(const TrustedRequest& request) override;
  MeasurementRules rules() const override;
  void set_noise(const std::string& case_name, double aa_noise) override;
  void set_floor(const std::string& case_name, double least_ns) override;
  double delta_for(const std::string& case_name, double bracket_ns) const;

 private:
  struct Trial;     // the evaluation in hand
  struct Portion {  // what one pair of fresh processes adds to a comparison
    const StoppingRule& rule;
    int process = 0;
    int pairs = 0;
    std::uint64_t one_full_in = 1;  // of the candidate's outputs so many get the full check
  };
  Evaluation conduct(const Subject& candidate, Stage stage,
                     const std::function<void(Trial&)>& body);
  bool may_go_on(Trial& trial) const;
  bool start_reference(Trial& trial, const Subject& reference, int threads,
                       std::span<const Case> cases, std::unique_ptr<BenchProcess>& process);
  std::uint64_t screen_seed() const;
  Outcome<CeilingTime> time_trusted_case(const TrustedRequest& request, const Case& the_case);
  bool compare_in_fresh_processes(Trial& trial, const CompareRequest& request,
                                  std::uint64_t input_seed, ComparisonCourse& course);
  CpuSeat seat(int threads) const;
  bool may_be_promoted(Trial& trial, const CompareRequest& request);
  bool pass_the_gates(Trial& trial, const CompareRequest& request);
  bool time_held_out(Trial& trial, const CompareRequest& request);
  bool start(Trial& trial, const Subject& subject, int threads, std::span<const Case> cases,
             std::unique_ptr<BenchProcess>& process);
  bool check_cases(Trial& trial, BenchProcess& process, const std::vector<Case>& cases,
                   std::uint64_t input_seed);
  bool time_case(Trial& trial, BenchProcess& candidate, BenchProcess& reference,
                 const Case& the_case, std::uint64_t input_seed, const Portion& portion,
                 Measurement& measurement);
  bool time_cases(Trial& trial, BenchProcess& candidate, BenchProcess& reference,
                  const CompareRequest& request, std::uint64_t input_seed,
                  ComparisonCourse& course);
  ComparisonCourse course_of(const CompareRequest& request) const;
  void finish(Trial& trial);

  const Problem& problem_;
  ProblemCode& code_;
  JudgeOptions options_;
  const Clock& clock_;
  InputBank bank_;
  std::map<std::string, double> noise_;
  std::map<std::string, double> floor_ns_;
};

}  // namespace kbeam
