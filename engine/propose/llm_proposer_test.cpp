#include "propose/llm_proposer.h"

#include <gtest/gtest.h>

#include <utility>

namespace kbeam {
namespace {

// Answers what the test put into it; remembers what it was sent.
class ScriptedEndpoint final : public ModelEndpoint {
 public:
  void send(ModelRequest request) override { sent.push_back(std::move(request)); }
  std::vector<ModelReply> take(const Moment&) override { return std::exchange(ready, {}); }

  void reply(const std::string& id, const std::string& text) {
    ModelReply reply{.request_id = id, .text = text};
    reply.usage = {.tokens_in = 100, .tokens_out = 10};
    ready.push_back(reply);
  }
  void fail(const std::string& id, ReplyOutcome outcome, bool is_final = false) {
    ready.push_back(
        {.request_id = id, .failure = outcome, .is_final = is_final, .detail = "it failed"});
  }

  std::vector<ModelRequest> sent;
  std::vector<ModelReply> ready;
};

constexpr char kTwoIdeas[] =
    R"({"ideas": [{"family": "rows", "hypothesis": "hold four rows in registers"},
                  {"family": "stage", "hypothesis": "stage exponentials in the cache"}]})";
constexpr char kSource[] = "```cpp\n#include <kbeam/candidate.h>\nKBEAM_PLAN(plan, args) {}\n```\n";

class LlmProposerTest : public ::testing::Test {
 protected:
  LlmProposerTest() {
    options_.url = "http://localhost/v1";
    options_.models = {{"small", 1, 2}};
    options_.connections = 8;
  }
  void start() {
    auto endpoint = std::make_unique<ScriptedEndpoint>();
    endpoint_ = endpoint.get();
    proposer_ = make_llm_proposer({.options = options_, .name = "llm:x", .clock = &clock_},
                                  std::move(endpoint));
  }
  void ask(int number, const std::vector<std::string>& known_ideas = {}) {
    auto context = std::make_shared<ProposalContext>();
    context->target = "cpu";
    context->known_ideas = known_ideas;
    proposer_->ask({.number = number, .context = context});
  }
  // Takes what came; allows every request.
  void listen() {
    replies_.clear();
    deliveries_.clear();
    remarks_ = 0;
    requests_.clear();
    for (const ProposerNews& news : proposer_->take_news({})) {
      if (const auto* request = std::get_if<RequestRecord>(&news)) {
        requests_.push_back(*request);
        proposer_->allow(request->id);
      } else if (const auto* reply = std::get_if<ReplyRecord>(&news)) {
        replies_.push_back(*reply);
      } else if (const auto* delivery = std::get_if<Delivery>(&news)) {
        deliveries_.push_back(*delivery);
      } else {
        ++remarks_;
      }
    }
  }

  LlmOptions options_;
  ManualClock clock_;
  ScriptedEndpoint* endpoint_ = nullptr;
  std::unique_ptr<Proposer> proposer_;
  std::vector<RequestRecord> requests_;
  std::vector<ReplyRecord> replies_;
  std::vector<Delivery> deliveries_;
  int remarks_ = 0;
};

TEST_F(LlmProposerTest, IdeasThenEachInSeveralVariants) {
  start();
  EXPECT_EQ(proposer_->state(), ProposerState::ready);
  ask(7);
  EXPECT_EQ(proposer_->state(), ProposerState::working) << "one ask for ideas at a time";
  listen();
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].id, "a7/ideas");
  EXPECT_GT(requests_[0].most.money, 0);
  EXPECT_FALSE(requests_[0].prompt.empty());
  ASSERT_EQ(endpoint_->sent.size(), 1u);

  endpoint_->reply("a7/ideas", kTwoIdeas);
  listen();
  ASSERT_EQ(replies_.size(), 1u);
  EXPECT_EQ(replies_[0].outcome, ReplyOutcome::delivered);
  EXPECT_DOUBLE_EQ(replies_[0].usage.money, 120e-6);
  ASSERT_EQ(requests_.size(), 4u) << "two ideas in two variants";
  EXPECT_EQ(requests_[3].id, "a7/code2.2");
  EXPECT_EQ(proposer_->state(), ProposerState::ready) << "there are free connections";

  endpoint_->reply("a7/code1.1", kSource);
  listen();
  ASSERT_EQ(deliveries_.size(), 1u);
  EXPECT_EQ(deliveries_[0].idea.family, "rows");
  EXPECT_EQ(deliveries_[0].idea.source, "llm:small");
  EXPECT_EQ(deliveries_[0].source_name, "rows_7_1.cpp");
}

TEST_F(LlmProposerTest, AFailedCandidateIsMendedSoManyTimes) {
  options_.variants = 1;
  options_.repairs = 2;
  start();
  ask(1);
  listen();
  endpoint_->reply("a1/ideas", R"([{"family": "rows", "hypothesis": "hold rows"}])");
  listen();
  endpoint_->reply("a1/code1.1", kSource);
  for (int round = 1; round <= 3; ++round) {
    listen();
    ASSERT_EQ(deliveries_.size(), 1u);
    proposer_->tell({.delivery_id = deliveries_[0].id,
                     .first = true,
                     .verdict = Verdict::build_failed,
                     .reason = "no",
                     .log = "line 3: no such"});
    listen();
    if (round == 3) break;
    ASSERT_EQ(requests_.size(), 1u) << "round " << round;
    EXPECT_EQ(requests_[0].step, "repair");
    EXPECT_NE(requests_[0].prompt.find("line 3: no such"), std::string::npos);
    endpoint_->reply(requests_[0].id, kSource);
  }
  EXPECT_TRUE(requests_.empty()) << "two rounds are enough";
}

TEST_F(LlmProposerTest, WhatIsNotTheSourcesFaultIsNotMended) {
  options_.variants = 1;
  start();
  ask(1);
  listen();
  endpoint_->reply("a1/ideas", R"([{"family": "rows", "hypothesis": "hold rows"}])");
  listen();
  endpoint_->reply("a1/code1.1", kSource);
  listen();
  const std::string id = deliveries_.at(0).id;
  for (const Verdict verdict :
       {Verdict::accepted, Verdict::engine_failed, Verdict::not_supported, Verdict::too_noisy})
    proposer_->tell({.delivery_id = id, .first = true, .verdict = verdict});
  proposer_->tell(
      {.delivery_id = id, .first = true, .duplicate = true, .verdict = Verdict::build_failed});
  proposer_->tell({.delivery_id = id, .first = false, .verdict = Verdict::wrong_value});
  proposer_->tell({.delivery_id = "unknown", .first = true, .verdict = Verdict::wrong_value});
  listen();
  EXPECT_TRUE(requests_.empty());
}

TEST_F(LlmProposerTest, AReplyWithoutACandidateIsAskedForAgain) {
  options_.variants = 1;
  start();
  ask(1);
  listen();
  endpoint_->reply("a1/ideas", kTwoIdeas);
  listen();
  endpoint_->reply("a1/code1.1", "Just unroll it.");
  endpoint_->fail("a1/code2.1", ReplyOutcome::refused);
  listen();
  ASSERT_EQ(replies_.size(), 2u);
  EXPECT_EQ(replies_[0].outcome, ReplyOutcome::no_code_block);
  EXPECT_EQ(replies_[1].outcome, ReplyOutcome::refused);
  ASSERT_EQ(requests_.size(), 1u) << "a refusal is not argued with";
  EXPECT_EQ(requests_[0].id, "a1/repair1.1.1");
}

TEST_F(LlmProposerTest, KnownIdeasAreNotWrittenAndAModelWithoutNewOnesIsAskedNoMore) {
  options_.patience = 2;
  start();
  ask(1, {"Hold four rows in the registers.", "Staging exponentials in the cache"});
  listen();
  endpoint_->reply("a1/ideas", kTwoIdeas);
  listen();
  EXPECT_EQ(replies_.at(0).outcome, ReplyOutcome::duplicate);
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(proposer_->state(), ProposerState::ready);
  ask(2);
  listen();
  endpoint_->reply("a2/ideas", "{\"ideas\": []}");
  listen();
  EXPECT_EQ(replies_.at(0).outcome, ReplyOutcome::no_ideas);
  EXPECT_EQ(remarks_, 1);
  EXPECT_EQ(proposer_->state(), ProposerState::finished);
}

TEST_F(LlmProposerTest, AfterFailuresItRestsLongerAndLonger) {
  start();
  for (int i = 1; i <= 3; ++i) {
    ASSERT_EQ(proposer_->state(), ProposerState::ready);
    ask(i);
    listen();
    endpoint_->fail(requests_.at(0).id, ReplyOutcome::unreachable);
    listen();
    EXPECT_EQ(proposer_->state(), ProposerState::resting);
    clock_.advance_ns((1'000'000'000LL << (i - 1)) - 1);
    EXPECT_EQ(proposer_->state(), ProposerState::resting) << "failure " << i;
    clock_.advance_ns(1);
  }
  EXPECT_EQ(proposer_->state(), ProposerState::ready) << "an outage ends one day";
}

TEST_F(LlmProposerTest, ABadKeyEndsIt) {
  start();
  ask(1);
  listen();
  endpoint_->fail("a1/ideas", ReplyOutcome::http_error, /*is_final=*/true);
  listen();
  EXPECT_EQ(proposer_->state(), ProposerState::finished);
  EXPECT_EQ(remarks_, 1);
}

TEST_F(LlmProposerTest, WhatABudgetForbidsIsNotSent) {
  start();
  ask(1);
  const auto news = proposer_->take_news({});
  proposer_->forbid(std::get<RequestRecord>(news.at(0)).id);
  EXPECT_TRUE(endpoint_->sent.empty());
  EXPECT_EQ(proposer_->state(), ProposerState::ready);
}

TEST(RecordedEndpoint, EachReplyComesAtItsMoment) {
  std::map<std::string, RecordedReply> replies;
  replies["late"] = {.model = "m", .at_evaluation = 5, .order = 2, .reply = {.text = "two"}};
  replies["early"] = {.model = "m", .at_evaluation = 2, .order = 1, .reply = {.text = "one"}};
  RecordedEndpoint endpoint(replies);
  EXPECT_EQ(endpoint.fixed_model("late"), "m");
  EXPECT_FALSE(endpoint.fixed_model("other"));
  endpoint.send({.id = "late"});
  endpoint.send({.id = "early"});
  EXPECT_TRUE(endpoint.take({.evaluations = 1}).empty());
  const auto first = endpoint.take({.evaluations = 3});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].text, "one");
  EXPECT_TRUE(endpoint.take({.evaluations = 4}).empty());
  const auto hurried = endpoint.take({.evaluations = 4, .is_idle = true});
  ASSERT_EQ(hurried.size(), 1u);
  EXPECT_EQ(hurried[0].request_id, "late");
  endpoint.send({.id = "unknown"});
  EXPECT_EQ(endpoint.take({}).at(0).failure, ReplyOutcome::lost);
}

}  // namespace
}  // namespace kbeam
