#include "loop/metered_judge.h"

#include <utility>

namespace kbeam {
namespace {

class MeteredJudge final : public Judge {
 public:
  MeteredJudge(std::unique_ptr<Judge> judge, ActivityMeter& meter)
      : judge_(std::move(judge)), meter_(meter) {}

  Evaluation check(const Subject& subject, const std::vector<Case>& cases) override {
    const ActivityMeter::Span counted(meter_);
    return judge_->check(subject, cases);
  }
  Evaluation screen(const Subject& candidate, const Subject& reference,
                    const std::vector<Case>& check_cases,
                    const std::vector<Case>& timed_cases) override {
    const ActivityMeter::Span counted(meter_);
    return judge_->screen(candidate, reference, check_cases, timed_cases);
  }
  Evaluation compare(const CompareRequest& request) override {
    const ActivityMeter::Span counted(meter_);
    return judge_->compare(request);
  }
  std::map<std::string, Outcome<CeilingTime>> time_trusted(const TrustedRequest& request) override {
    const ActivityMeter::Span counted(meter_);
    return judge_->time_trusted(request);
  }
  MeasurementRules rules() const override { return judge_->rules(); }
  void set_noise(const std::string& case_name, double aa_noise) override {
    judge_->set_noise(case_name, aa_noise);
  }
  void set_floor(const std::string& case_name, double least_ns) override {
    judge_->set_floor(case_name, least_ns);
  }

 private:
  std::unique_ptr<Judge> judge_;
  ActivityMeter& meter_;
};

}  // namespace

std::unique_ptr<Judge> make_metered_judge(std::unique_ptr<Judge> judge, ActivityMeter& meter) {
  return std::make_unique<MeteredJudge>(std::move(judge), meter);
}

}  // namespace kbeam
