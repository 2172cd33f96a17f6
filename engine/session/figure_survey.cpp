#include "session/figure_survey.h"

#include <utility>

#include "base/entropy.h"

namespace kbeam {

Result<std::vector<CheckReport>> survey_figures(const Problem& problem, ProblemCode& code,
                                                InputBank& bank, const Subject& subject,
                                                const SurveyRequest& request) {
  std::vector<CheckReport> reports;
  ASSIGN_OR_RETURN(const auto started,
                   BenchProcess::start(problem, code, subject, request.seat, problem.cases));
  if (!started.ok())
    return Error{ErrorCode::unavailable, "start " + subject.id, started.failure.sentence,
                 "see `kbeam check`"};
  BenchProcess& process = **started.value;
  for (const Case& the_case : problem.cases) {
    const int draws = the_case.timed ? 1 : request.draws;
    for (int draw = 0; draw < draws; ++draw) {
      const auto index = static_cast<std::uint64_t>(draw);
      const std::uint64_t seed = derive_seed(request.seed, "inputs " + the_case.name, index);
      const Outcome<bool> prepared = process.prepare(the_case, bank.inputs_for(the_case, seed));
      if (!prepared.ok())
        return Error{ErrorCode::unavailable, "plan case " + the_case.name + " of " + subject.id,
                     prepared.failure.sentence, "see `kbeam check`"};
      const std::uint64_t key = derive_seed(request.seed, "content " + the_case.name, index);
      for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
        const CheckRequest check{depth, request.grade, derive_seed(key, "secret")};
        const Outcome<CheckedCall> called = process.call(key, check);
        if (called.ok()) reports.push_back(called.value->report);
      }
    }
  }
  return reports;
}

}  // namespace kbeam
