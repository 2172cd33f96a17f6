#include "propose/recorded_agent.h"

#include <cstddef>
#include <utility>

namespace kbeam {
namespace {

class RecordedAgent final : public Proposer {
 public:
  RecordedAgent(std::string name, std::vector<RecordedSession> sessions)
      : name_(std::move(name)), sessions_(std::move(sessions)) {}

  std::string name() const override { return name_; }

  // Asked no sooner than it was: what it is asked after decides what else is asked before.
  ProposerState state() const override {
    if (is_waiting_ || is_running_) return ProposerState::working;
    if (next_ == sessions_.size()) return ProposerState::finished;
    const bool due = sessions_[next_].asked_at <= moment_.evaluations || moment_.is_idle;
    return due ? ProposerState::ready : ProposerState::resting;
  }

  // A run that goes on asks with the numbers that follow: the sessions before were heard.
  void ask(const ProposalAsk& ask) override {
    while (next_ + 1 < sessions_.size() && sessions_[next_].request.ask < ask.number) ++next_;
    is_waiting_ = true;
    brought_ = 0;
    news_.emplace_back(sessions_[next_].request);
  }

  void allow(const std::string&) override { is_running_ = std::exchange(is_waiting_, false); }
  void forbid(const std::string&) override {
    is_waiting_ = false;
    next_ = sessions_.size();
  }

  // A loop that has nothing else to do gets the next thing at once, if nothing is due.
  std::vector<ProposerNews> take_news(const Moment& moment) override {
    moment_ = moment;
    std::vector<ProposerNews> news = std::exchange(news_, {});
    const auto may_hurry = [&] { return moment.is_idle && news.empty(); };
    const auto is_due = [&](int at_evaluation) {
      return at_evaluation <= moment.evaluations || may_hurry();
    };
    while (is_running_) {
      const RecordedSession& session = sessions_[next_];
      if (brought_ < session.brought.size()) {
        const RecordedSession::Brought& one = session.brought[brought_];
        if (!is_due(one.at_evaluation)) break;
        news.emplace_back(one.delivery);
        ++brought_;
      } else if (const bool cut_off = session.reply.outcome == ReplyOutcome::cancelled ||
                                      session.reply.outcome == ReplyOutcome::lost;
                 cut_off ? may_hurry() : is_due(session.ended_at)) {
        // One that the end of its run cut off goes on to the end of this one, if it has another.
        news.emplace_back(session.reply);
        is_running_ = false;
        ++next_;
      } else {
        break;
      }
    }
    return news;
  }

  void tell(const Judgement&) override {}

 private:
  std::string name_;
  std::vector<RecordedSession> sessions_;
  std::size_t next_ = 0;     // session, or the one at work
  std::size_t brought_ = 0;  // of it
  bool is_waiting_ = false;  // for leave to begin
  bool is_running_ = false;
  Moment moment_;
  std::vector<ProposerNews> news_;
};

}  // namespace

std::unique_ptr<Proposer> make_recorded_agent(std::string name,
                                              std::vector<RecordedSession> sessions) {
  return std::make_unique<RecordedAgent>(std::move(name), std::move(sessions));
}

}  // namespace kbeam
