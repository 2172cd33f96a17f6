// What the loop writes down and reads back: the only code that knows which events mean what. A
// resumed campaign is rebuilt from here, so whatever changes the loop's course is an event before
// it takes effect.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "archive/archive.h"
#include "base/result.h"
#include "loop/baseline.h"
#include "loop/challenges.h"
#include "loop/inbox.h"
#include "loop/promotion.h"
#include "loop/run_usage.h"
#include "loop/steering.h"
#include "search/search.h"

namespace kbeam {

// The course of a campaign so far.
struct History {
  std::optional<BaselineFacts> baseline;
  struct Seen {
    Candidate candidate;
    Observation observation;
  };
  std::vector<Submission> submissions;
  SteeringState steering;
  double used_s = 0;
  double busy_s = 0;
  double device_s = 0;
  int evaluations = 0;  // screened
  int challenges = 0;   // cases on which somebody was measured against the champion
  std::map<Verdict, int> rejects;
  std::vector<Champion>
      crowned;  // in order: a champion that fails later gives way to the one before it
  std::vector<Contender> contenders;                // in order
  std::map<std::string, Observation> observations;  // by candidate id
  // Object hash -> the candidate of one row that was judged with it.
  std::map<std::string, std::string> objects_seen;
  struct RecordedPromotion {
    std::string candidate_id;
    std::string evaluation_id;
    std::string all_cores_id;  // empty: none
    double confidence = 0.99;
    double case_confidence = 0.99;
    int slower_allowed = 0;
    std::optional<std::int64_t> failed_at;
  };
  std::vector<RecordedPromotion> promotions;  // with the champions of now
};

class CampaignLog {
 public:
  explicit CampaignLog(std::unique_ptr<Archive> archive) : archive_(std::move(archive)) {}

  Result<void> baseline(const BaselineFacts& facts);
  Result<void> submission(const Submission& submission);
  Result<void> steering(const SteeringMessage& message);
  Result<void> attempt(const BuiltCandidate& built, const Evaluation& evaluation,
                       const std::string& decision, const std::string& why);
  Result<void> observation(const Observation& observation, const Used& used);
  // Whenever time was used that no observation tells of, and when the limits have changed.
  Result<void> usage(const Used& used, const Budget& limits);
  Result<void> confirmation(const Evaluation& evaluation);
  Result<void> crowned(const Champion& champion, const std::string& why);
  Result<void> refused(const Settlement& settled);
  Result<void> promotion(const Promotion& promotion);
  // What the search did by itself while it was replayed: those that a kill kept out of the record.
  Result<void> new_notices(const std::vector<Search::Notice>& notices);
  Result<void> families(const std::vector<FamilyState>& families);
  // Writes down the roles that changed since the last call.
  Result<void> roles(const std::vector<FamilyState>& families);
  Result<void> ended(const Json& summary);

  // Replays what was recorded into `search` (sketches first, submissions as they came).
  Result<History> replay(Search& search, const std::function<Sketch(const Submission&)>& to_sketch);

  // The promotion of this portfolio among those recorded; nothing when there is none that counts.
  Result<std::optional<Promotion>> find_promotion(
      const Candidate& portfolio, const std::vector<History::RecordedPromotion>& recorded) const;

  std::string next_evaluation_id();
  Archive& archive() { return *archive_; }

 private:
  std::unique_ptr<Archive> archive_;
  int evaluation_count_ = -1;                 // unknown until first asked
  std::map<std::string, std::string> roles_;  // as written down, by family
};

}  // namespace kbeam
