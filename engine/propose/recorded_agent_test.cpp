#include "propose/recorded_agent.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

RecordedSession session(int number, int asked_at, std::vector<int> brought_at, int ended_at,
                        ReplyOutcome outcome = ReplyOutcome::delivered) {
  RecordedSession made{.request = {.id = "a#" + std::to_string(number), .ask = number},
                       .asked_at = asked_at,
                       .brought = {},
                       .reply = {.request_id = "a#" + std::to_string(number), .outcome = outcome},
                       .ended_at = ended_at};
  for (const int at : brought_at) {
    Delivery delivery;
    delivery.id = made.request.id + "/" + std::to_string(made.brought.size() + 1);
    made.brought.push_back({delivery, at});
  }
  return made;
}

// "request a#1", "a#1/1", "reply a#1"
std::vector<std::string> hear(Proposer& agent, const Moment& moment) {
  std::vector<std::string> heard;
  for (const ProposerNews& news : agent.take_news(moment)) {
    if (const auto* request = std::get_if<RequestRecord>(&news)) {
      heard.push_back("request " + request->id);
      agent.allow(request->id);
    } else if (const auto* delivery = std::get_if<Delivery>(&news)) {
      heard.push_back(delivery->id);
    } else if (const auto* reply = std::get_if<ReplyRecord>(&news)) {
      heard.push_back("reply " + reply->request_id);
    }
  }
  return heard;
}

using Heard = std::vector<std::string>;

TEST(RecordedAgent, EverythingComesWhenItCame) {
  const auto agent =
      make_recorded_agent("agent:a", {session(1, 0, {1, 1, 3}, 4), session(2, 6, {}, 7)});
  hear(*agent, {.evaluations = 0});
  ASSERT_EQ(agent->state(), ProposerState::ready);
  agent->ask({.number = 1});
  EXPECT_EQ(hear(*agent, {.evaluations = 0}), Heard{"request a#1"});
  EXPECT_EQ(agent->state(), ProposerState::working);
  EXPECT_EQ(hear(*agent, {.evaluations = 0}), Heard{});
  EXPECT_EQ(hear(*agent, {.evaluations = 1}), (Heard{"a#1/1", "a#1/2"}));
  EXPECT_EQ(hear(*agent, {.evaluations = 2}), Heard{});
  EXPECT_EQ(hear(*agent, {.evaluations = 5}), (Heard{"a#1/3", "reply a#1"}));
  EXPECT_EQ(agent->state(), ProposerState::resting) << "it was not asked before 6";
  EXPECT_EQ(hear(*agent, {.evaluations = 6}), Heard{});
  EXPECT_EQ(agent->state(), ProposerState::ready);
  agent->ask({.number = 2});
  EXPECT_EQ(hear(*agent, {.evaluations = 7}), (Heard{"request a#2"}));
  EXPECT_EQ(hear(*agent, {.evaluations = 7}), (Heard{"reply a#2"}));
  EXPECT_EQ(agent->state(), ProposerState::finished);
}

TEST(RecordedAgent, AnIdleLoopGetsOneThingAtATime) {
  const auto agent = make_recorded_agent("agent:a", {session(1, 9, {20, 30}, 40)});
  const Moment idle{.evaluations = 0, .is_idle = true};
  hear(*agent, idle);
  ASSERT_EQ(agent->state(), ProposerState::ready);
  agent->ask({.number = 1});
  EXPECT_EQ(hear(*agent, idle), Heard{"request a#1"});
  EXPECT_EQ(hear(*agent, idle), Heard{"a#1/1"});
  EXPECT_EQ(hear(*agent, idle), Heard{"a#1/2"});
  EXPECT_EQ(hear(*agent, idle), Heard{"reply a#1"});
}

TEST(RecordedAgent, WhatIsDueComesBeforeWhatAnIdleLoopGets) {
  const auto agent = make_recorded_agent("agent:a", {session(1, 0, {0}, 1)});
  agent->ask({.number = 1});
  hear(*agent, {.evaluations = 0});
  EXPECT_EQ(hear(*agent, {.evaluations = 0, .is_idle = true}), Heard{"a#1/1"})
      << "it gives the loop something to do";
  EXPECT_EQ(hear(*agent, {.evaluations = 1}), Heard{"reply a#1"});
}

TEST(RecordedAgent, ASessionThatWasCutOffLastsUntilNothingElseIsLeft) {
  for (const ReplyOutcome outcome : {ReplyOutcome::cancelled, ReplyOutcome::lost}) {
    const auto agent = make_recorded_agent("agent:a", {session(1, 0, {1}, 3, outcome)});
    agent->ask({.number = 1});
    hear(*agent, {.evaluations = 0});
    EXPECT_EQ(hear(*agent, {.evaluations = 3}), Heard{"a#1/1"}) << "it was at work to the end";
    EXPECT_EQ(hear(*agent, {.evaluations = 3, .is_idle = true}), Heard{"reply a#1"});
    EXPECT_EQ(agent->state(), ProposerState::finished);
  }
}

TEST(RecordedAgent, AResumedRunDoesNotHearSessionsTwice) {
  const auto agent = make_recorded_agent("agent:a", {session(1, 0, {0}, 1), session(2, 1, {1}, 2)});
  hear(*agent, {.evaluations = 1});
  agent->ask({.number = 2});
  EXPECT_EQ(hear(*agent, {.evaluations = 1}), Heard{"request a#2"});
}

TEST(RecordedAgent, WhatIsForbiddenEndsIt) {
  const auto agent = make_recorded_agent("agent:a", {session(1, 0, {0}, 1)});
  agent->ask({.number = 1});
  agent->forbid("a#1");
  EXPECT_EQ(agent->state(), ProposerState::finished);
  EXPECT_EQ(make_recorded_agent("agent:a", {})->state(), ProposerState::finished);
}

}  // namespace
}  // namespace kbeam
