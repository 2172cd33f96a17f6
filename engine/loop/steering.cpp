#include "loop/steering.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "loop/campaign_log.h"
#include "loop/campaign_search.h"
#include "loop/progress.h"
#include "loop/target_tools.h"
#include "search/search.h"

namespace kbeam {
namespace {

constexpr std::chrono::milliseconds kPausePoll{100};

std::string describe(const SteeringMessage& message) {
  switch (message.action) {
    case SteeringAction::say:
      return fmt::format("{} says: {}", message.who, message.text);
    case SteeringAction::pause:
      return fmt::format("{} paused the run", message.who);
    case SteeringAction::resume:
      return fmt::format("{} resumed the run", message.who);
    case SteeringAction::drop:
    case SteeringAction::protect:
      return fmt::format("{} asked to {} family {}", message.who, to_string(message.action),
                         message.family);
  }
  return {};
}

Result<void> take(const Listener& listener, const SteeringMessage& message) {
  if (listener.state.has_taken(message.id)) return {};  // killed before its file was removed
  RETURN_IF_ERROR(listener.log.steering(message));
  const std::string trouble = apply_steering(message, listener.search, listener.state);
  listener.progress.event(describe(message) + (trouble.empty() ? "" : ": " + trouble));
  if (trouble.empty()) return {};
  return listener.log.archive().append_decision({"steering refused", message.family, trouble});
}

Result<void> take_messages(const Listener& listener) {
  for (const Inbox::WaitingMessage& waiting : listener.inbox.messages()) {
    if (waiting.message.ok())
      RETURN_IF_ERROR(take(listener, *waiting.message));
    else
      listener.progress.event("refused a message: " + waiting.message.error().text());
    listener.inbox.discard(waiting.file);
  }
  return {};
}

std::string why_refused(const Listener& listener, const Result<Submission>& submission) {
  if (!submission.ok()) return submission.error().text();
  if (std::string mistakes = mistakes_in(*submission, listener.target); !mistakes.empty())
    return mistakes;
  if (listener.state.has_dropped(submission->idea.family))
    return fmt::format("family {0} was dropped; `kbeam protect {0}` brings it back",
                       submission->idea.family);
  return {};
}

Result<void> take_submissions(const Listener& listener) {
  for (const Inbox::Waiting& waiting : listener.inbox.waiting()) {
    const std::string name = waiting.submission.ok() ? waiting.submission->source_name
                                                     : waiting.file.filename().string();
    if (const std::string why = why_refused(listener, waiting.submission); !why.empty()) {
      // Whoever submitted it may have no eye on this terminal.
      RETURN_IF_ERROR(listener.log.archive().append_decision({"submission refused", name, why}));
      listener.progress.event("refused the submission " + name + ": " + why);
    } else {
      RETURN_IF_ERROR(listener.log.archive().append_idea(waiting.submission->idea));
      RETURN_IF_ERROR(listener.log.submission(*waiting.submission));
      listener.search.add(make_sketch(*waiting.submission));
      listener.progress.event("took the submission " + name);
    }
    listener.inbox.discard(waiting.file);
  }
  return {};
}

}  // namespace

bool SteeringState::has_taken(const std::string& id) const {
  return std::any_of(taken.begin(), taken.end(),
                     [&](const SteeringMessage& message) { return message.id == id; });
}

bool SteeringState::has_dropped(const std::string& family) const {
  const auto about = [&](const SteeringMessage& message) {
    return message.family == family &&
           (message.action == SteeringAction::drop || message.action == SteeringAction::protect);
  };
  const auto last = std::find_if(taken.rbegin(), taken.rend(), about);
  return last != taken.rend() && last->action == SteeringAction::drop;
}

std::vector<std::string> SteeringState::texts() const {
  std::vector<std::string> texts;
  for (const SteeringMessage& message : taken)
    if (message.action == SteeringAction::say) texts.push_back(message.who + ": " + message.text);
  return texts;
}

std::string apply_steering(const SteeringMessage& message, Search& search, SteeringState& state) {
  const std::string why = "asked for by " + message.who;
  bool known = true;
  if (message.action == SteeringAction::drop) known = search.drop(message.family, why);
  if (message.action == SteeringAction::protect) known = search.protect(message.family, why);
  if (!known) {
    SteeringMessage without = message;  // taken, and about no family that there is
    without.family.clear();
    state.taken.push_back(std::move(without));
    return "there is no family " + message.family;
  }
  if (message.action == SteeringAction::pause) state.paused = true;
  if (message.action == SteeringAction::resume) state.paused = false;
  state.taken.push_back(message);
  return {};
}

Result<void> take_inbox(const Listener& listener) {
  RETURN_IF_ERROR(take_messages(listener));
  return take_submissions(listener);
}

Result<void> wait_while_paused(const Listener& listener,
                               const std::function<bool()>& asked_to_stop) {
  if (!listener.state.paused) return {};
  listener.progress.phase("paused; `kbeam resume` goes on, `kbeam stop` ends the run");
  while (listener.state.paused && !asked_to_stop()) {
    std::this_thread::sleep_for(kPausePoll);
    RETURN_IF_ERROR(take_inbox(listener));
  }
  if (!listener.state.paused) listener.progress.phase("searching");
  return {};
}

Result<void> end_pause(const Listener& listener, const std::string& who) {
  for (const Inbox::WaitingMessage& waiting : listener.inbox.messages())
    if (waiting.message.ok() && (waiting.message->action == SteeringAction::pause ||
                                 waiting.message->action == SteeringAction::resume))
      listener.inbox.discard(waiting.file);
  if (!listener.state.paused) return {};
  const std::int64_t now_ms = SystemClock().unix_ms();
  return take(listener, {.id = fmt::format("resume-{}", now_ms),
                         .action = SteeringAction::resume,
                         .text = "",
                         .family = "",
                         .who = who,
                         .asked_unix_ms = now_ms});
}

}  // namespace kbeam
