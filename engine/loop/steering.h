// What people and agents say to a running campaign: taken from its inbox, in the archive before it
// takes effect, and done again from there when the run is resumed or decided again. Does not read
// questions: those are answered from the archive (answers.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/inbox.h"

namespace kbeam {

class CampaignLog;
class Progress;
class Search;

// Everything that was said so far.
struct SteeringState {
  std::vector<SteeringMessage> taken;
  bool paused = false;

  bool has_taken(const std::string& id) const;
  bool has_dropped(const std::string& family) const;
  // What the proposers are told, oldest first, in the prompts of the next round: "NAME: TEXT".
  std::vector<std::string> texts() const;
};

// A message takes effect on the search. Empty, or why it cannot.
std::string apply_steering(const SteeringMessage& message, Search& search, SteeringState& state);

// What a running campaign needs to listen.
struct Listener {
  const Inbox& inbox;
  CampaignLog& log;
  Search& search;
  Progress& progress;
  SteeringState& state;
  std::string target;  // of the campaign: submissions for another are refused
};

// Takes what waits: messages, then submissions.
Result<void> take_inbox(const Listener& listener);

// Goes on listening until nobody wants the campaign paused, or `asked_to_stop`.
Result<void> wait_while_paused(const Listener& listener,
                               const std::function<bool()>& asked_to_stop);

// When a run goes on: what was said to hold it is over, the rest still waits.
Result<void> end_pause(const Listener& listener, const std::string& who);

}  // namespace kbeam
