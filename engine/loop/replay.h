// A recorded run, done again as far as it can be: the archive read in full, its decisions made
// again, its winner rebuilt from the stored source, checked on new seeds and measured anew. What
// was stored and is not as it was written is refused by name.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "loop/progress.h"
#include "loop/promotion.h"
#include "loop/recompute.h"
#include "model/campaign.h"
#include "model/problem.h"

namespace kbeam {

struct ReplayRequest {
  const Problem& problem;  // as the run's target sees it
  const Home& home;
  std::filesystem::path run_folder;
  std::filesystem::path cache;  // where the run's builds lie; new ones are made apart from them
  std::vector<int> candidate_cpus;
  int judge_cpu = 0;
  bool only_recorded = false;  // build and run nothing
};

struct Replay {
  CampaignConfig config;
  std::int64_t events = 0;
  Recomputed recomputed;
  bool problem_changed = false;  // then nothing that depends on it is done again
  std::optional<Candidate> winner;
  std::string other_machine;  // why machine code and times are not to be compared, if so
  struct Recorded {
    double speedup = 0;
    double low = 0;
    double high = 0;
  };
  Recorded recorded;                   // of the winner
  std::optional<Promotion> promotion;  // anew
  std::string not_confirmed_because;   // empty when it is, or when nothing was measured
};

Result<Replay> replay_run(const ReplayRequest& request, Progress& progress);

}  // namespace kbeam
