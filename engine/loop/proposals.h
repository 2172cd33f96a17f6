// The pump between the loop and its proposers: asks those that are ready, writes down what they
// send and get before it takes effect, keeps the budgets for tokens and money, and hands their
// sources on to the search. Never waits; knows no proposer by kind.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/build_queue.h"
#include "loop/campaign_log.h"
#include "loop/progress.h"
#include "model/campaign.h"
#include "model/evaluation.h"
#include "propose/proposer.h"
#include "search/search.h"

namespace kbeam {

// What models and agents have cost so far.
struct ModelTotals {
  int requests = 0;   // allowed and sent
  int replies = 0;    // whatever came of them
  int delivered = 0;  // sources
  Usage usage;
  std::int64_t tokens() const { return usage.tokens_in + usage.tokens_out; }
};

class ProposalPump {
 public:
  struct Hooks {
    std::function<ProposalContext()> context;  // called only when somebody is asked
    std::function<void(Sketch)> add;           // to the search
    Progress* progress = nullptr;
  };
  ProposalPump(std::vector<std::unique_ptr<Proposer>> proposers, const Budget& budget,
               std::string target);

  // What a run that goes on has spent and knows; requests that its end left open are closed as
  // `lost`. Before the first `take`.
  Result<void> restore(CampaignLog& log);
  // Of the problem, of a person: when a proposer brings it too, it is a duplicate.
  void note_source(const std::string& source);

  // Takes what came, then asks who is ready.
  Result<void> take(CampaignLog& log, const Hooks& hooks, const Moment& moment);

  // After every screening. `champion_speedup`: of the champions before it, by case.
  void judged(const BuiltCandidate& built, const Evaluation& evaluation,
              const std::map<std::string, double>& speedup,
              const std::map<std::string, double>& champion_speedup);

  // Ends every proposer; what is still under way is written down as cancelled.
  Result<void> close(CampaignLog& log, const Moment& moment);

  bool may_bring_more() const;
  // The budget that is spent, once nothing that it paid for is left to come or to judge.
  // `nothing_to_judge`: the search has nothing to do.
  std::optional<StopReason> spent(bool nothing_to_judge) const;
  const ModelTotals& totals() const { return totals_; }

 private:
  struct Source {
    std::size_t proposer = 0;
    std::string delivery_id;
    int judged = 0;
    int at_evaluation = 0;
  };
  struct Open {  // allowed, not answered
    std::string proposer;
    RequestRecord record;  // without its prompt
  };
  Result<void> note(CampaignLog& log, const Hooks& hooks, std::size_t proposer,
                    const ProposerNews& news, const Moment& moment);
  Result<void> request(CampaignLog& log, std::size_t proposer, const RequestRecord& record,
                       const Moment& moment);
  Result<void> write_reply(CampaignLog& log, const std::string& proposer, const ReplyRecord& record,
                           const Moment& moment);
  Result<void> delivery(CampaignLog& log, const Hooks& hooks, std::size_t proposer,
                        const Delivery& delivery);
  std::optional<StopReason> lacks_room(const Usage& most) const;
  Role next_role(const ProposalContext& context) const;
  int backlog() const;  // sources that wait for their first judgement

  std::vector<std::unique_ptr<Proposer>> proposers_;
  Budget budget_;
  std::string target_;
  ModelTotals totals_;
  std::map<std::string, Open> open_;       // by request id
  std::map<std::string, Source> sources_;  // by normalised source
  std::set<std::string> foreign_sources_;  // normalised
  std::optional<StopReason> out_of_budget_;
  int asks_ = 0;
  int evaluations_ = 0;
};

}  // namespace kbeam
