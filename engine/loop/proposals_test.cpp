#include "loop/proposals.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "loop/contributions.h"

namespace kbeam {
namespace {

constexpr char kSource[] = "#include <kbeam/candidate.h>\nKBEAM_PLAN(plan, args) {}\n";

// Says what the test puts into it; remembers what it was told.
class ScriptedProposer final : public Proposer {
 public:
  std::string name() const override { return "llm:test"; }
  ProposerState state() const override { return now; }
  void ask(const ProposalAsk& one) override { asks.push_back(one); }
  std::vector<ProposerNews> take_news(const Moment&) override { return std::exchange(news, {}); }
  void allow(const std::string& id) override { allowed.push_back(id); }
  void forbid(const std::string& id) override { forbidden.push_back(id); }
  void tell(const Judgement& judgement) override { told.push_back(judgement); }

  ProposerState now = ProposerState::ready;
  std::vector<ProposerNews> news;
  std::vector<ProposalAsk> asks;
  std::vector<std::string> allowed, forbidden;
  std::vector<Judgement> told;
};

class ProposalPumpTest : public ::testing::Test {
 protected:
  ProposalPumpTest() : folder_(*make_temporary_folder(testing::TempDir(), "pump-")) {
    log_ = std::make_unique<CampaignLog>(
        Archive::create(folder_ / "archive.sqlite", CampaignConfig{.run_id = "r"}, {}).value());
    start({});
  }
  void TearDown() override {
    log_.reset();
    std::filesystem::remove_all(folder_);
  }
  void start(const Budget& budget) {
    auto proposer = std::make_unique<ScriptedProposer>();
    proposer_ = proposer.get();
    std::vector<std::unique_ptr<Proposer>> proposers;
    proposers.push_back(std::move(proposer));
    pump_ = std::make_unique<ProposalPump>(std::move(proposers), budget, "cpu");
  }
  void take(const Moment& moment = {}) {
    const auto taken =
        pump_->take(*log_,
                    {.context = [] { return ProposalContext{.near_misses = {{}}}; },
                     .add = [this](Sketch sketch) { added_.push_back(std::move(sketch)); },
                     .progress = &progress_},
                    moment);
    ASSERT_TRUE(taken.ok()) << taken.error().text();
  }
  RequestRecord request(const std::string& id, std::int64_t tokens = 100) {
    return {.id = id,
            .ask = 4,
            .model = "small",
            .step = "ideas",
            .prompt = "a prompt",
            .most = {.tokens_in = tokens / 2, .tokens_out = tokens / 2, .money = 0.5},
            .prompt_money = 0.125};
  }
  ReplyRecord reply(const std::string& id) {
    ReplyRecord record{.request_id = id,
                       .model = "small",
                       .step = "ideas",
                       .outcome = ReplyOutcome::delivered,
                       .text = "a reply",
                       .attempts = 3};
    record.usage = {.tokens_in = 30, .tokens_out = 5, .money = 0.25};
    return record;
  }
  Delivery delivery(const std::string& id, const std::string& source) {
    Delivery one{.id = id,
                 .request_id = "q",
                 .model = "small",
                 .source = source,
                 .source_name = "rows_1.cpp"};
    one.idea = {.family = "rows", .category = "layout", .text = "hold rows", .source = "llm:small"};
    return one;
  }
  BuiltCandidate built(const std::string& source) {
    BuiltCandidate made;
    made.candidate = {.id = "c1", .idea_id = "i", .family = "rows"};
    made.candidate.rows = {{.source = source, .source_name = "rows_1.cpp"}};
    return made;
  }
  std::vector<Json> events(const std::string& kind) {
    std::vector<Json> bodies;
    const std::vector<Event> all = log_->archive().events().value();
    for (const Event& event : all)
      if (event.kind == kind) bodies.push_back(Json::parse(event.body));
    return bodies;
  }

  std::filesystem::path folder_;
  std::unique_ptr<CampaignLog> log_;
  ScriptedProposer* proposer_ = nullptr;
  std::unique_ptr<ProposalPump> pump_;
  std::vector<Sketch> added_;
  SilentProgress progress_;
};

TEST_F(ProposalPumpTest, ARequestIsWrittenDownBeforeItIsAllowed) {
  proposer_->news = {request("q1"), reply("q0")};
  take();
  EXPECT_EQ(proposer_->allowed, std::vector<std::string>{"q1"});
  const auto requests = events("model_request");
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(log_->archive().content(requests[0]["prompt_hash"]).value(), "a prompt");
  const auto replies = events("model_reply");
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(log_->archive().content(replies[0]["text_hash"]).value(), "a reply");
  EXPECT_EQ(pump_->totals().tokens(), 35);
  EXPECT_TRUE(log_->archive().verify().ok());
}

TEST_F(ProposalPumpTest, RolesTakeTurnsAndASourceIsNotAskedForWhileOthersWait) {
  for (int i = 0; i < 3; ++i) take();
  ASSERT_EQ(proposer_->asks.size(), 3u);
  EXPECT_EQ(proposer_->asks[0].number, 1);
  EXPECT_EQ(proposer_->asks[2].role, Role::near_miss);
  for (int i = 0; i < 4; ++i)
    proposer_->news.push_back(
        delivery("d" + std::to_string(i), kSource + ("int x" + std::to_string(i) + ";")));
  take();
  EXPECT_EQ(added_.size(), 4u);
  EXPECT_EQ(proposer_->asks.size(), 3u) << "four sources wait to be judged";
  take({.evaluations = 40});
  EXPECT_EQ(proposer_->asks.size(), 4u) << "sources that never come up do not block for ever";
}

TEST_F(ProposalPumpTest, ASourceReachesTheSearchOnceAndItsJudgementComesBack) {
  pump_->note_source(std::string(kSource) + "// of the problem\nint y;\n");
  proposer_->news = {delivery("d1", kSource), delivery("d2", std::string("// again\n") + kSource),
                     delivery("d3", std::string(kSource) + "int y;"),
                     delivery("d4", "KBEAM_KNOB(int, kA, 7, 1, 2);\n"), delivery("d5", "")};
  proposer_->now = ProposerState::working;
  take();
  ASSERT_EQ(added_.size(), 1u);
  EXPECT_EQ(added_[0].idea.family, "rows");
  EXPECT_FALSE(added_[0].idea.id.empty());
  ASSERT_EQ(proposer_->told.size(), 4u);
  EXPECT_TRUE(proposer_->told[0].duplicate && proposer_->told[1].duplicate);
  EXPECT_FALSE(proposer_->told[2].duplicate);
  EXPECT_NE(proposer_->told[2].reason.find("kA"), std::string::npos);
  EXPECT_EQ(events("submission").size(), 1u) << "a resumed run adds it again from this";
  EXPECT_EQ(events("delivery").size(), 5u);

  proposer_->told.clear();
  for (int i = 0; i < 2; ++i)
    pump_->judged(built(kSource), {.verdict = Verdict::accepted}, {{"n16", 2.0}, {"n32", 0.5}},
                  {{"n16", 1.0}});
  ASSERT_EQ(proposer_->told.size(), 2u);
  EXPECT_EQ(proposer_->told[0].delivery_id, "d1");
  EXPECT_TRUE(proposer_->told[0].first);
  EXPECT_FALSE(proposer_->told[1].first);
  EXPECT_NEAR(proposer_->told[0].gain, std::log(2.0) / 2, 1e-12) << "a loss takes nothing away";
  pump_->judged(built("another"), {.verdict = Verdict::accepted}, {}, {});
  EXPECT_EQ(proposer_->told.size(), 2u) << "not one of a proposer's";
}

TEST_F(ProposalPumpTest, ABudgetIsNeverExceededAndEndsTheRun) {
  start({.tokens = 250});
  proposer_->now = ProposerState::working;
  proposer_->news = {request("q1"), request("q2"), request("q3")};
  take();
  EXPECT_EQ(proposer_->allowed.size(), 2u);
  EXPECT_EQ(proposer_->forbidden, std::vector<std::string>{"q3"});
  EXPECT_FALSE(pump_->spent(true)) << "two replies may leave room";
  EXPECT_TRUE(pump_->may_bring_more());
  proposer_->news = {reply("q1"), reply("q2"), request("q4", 200)};
  take();
  EXPECT_EQ(pump_->spent(true), StopReason::budget_tokens);
  EXPECT_FALSE(pump_->may_bring_more());
  EXPECT_LE(pump_->totals().tokens(), 250);
  proposer_->now = ProposerState::ready;
  take();
  EXPECT_TRUE(proposer_->asks.empty()) << "nobody is asked for what cannot be paid";
  EXPECT_EQ(events("model_reply").size(), 4u) << "what was forbidden is recorded too";
}

TEST_F(ProposalPumpTest, MoneyIsABudgetOfItsOwnAndWaitsForWhatItPaidFor) {
  start({.money = 0.6});
  proposer_->now = ProposerState::working;
  proposer_->news = {request("q1"), reply("q1"), delivery("d1", kSource), request("q2")};
  take();
  EXPECT_FALSE(pump_->spent(false)) << "a source was paid for and is not judged";
  pump_->judged(built(kSource), {.verdict = Verdict::accepted}, {}, {});
  EXPECT_EQ(pump_->spent(false), StopReason::budget_money);
}

TEST_F(ProposalPumpTest, ARunThatGoesOnKnowsWhatWasSpentAndWhatWasLost) {
  proposer_->news = {request("q1"), request("q2"), reply("q1"), delivery("d1", kSource)};
  proposer_->now = ProposerState::working;
  take();
  start({});
  ASSERT_TRUE(pump_->restore(*log_).ok());
  EXPECT_EQ(pump_->totals().requests, 2);
  EXPECT_EQ(pump_->totals().usage.tokens_in, 30 + 50) << "the prompt of the lost one is counted";
  EXPECT_EQ(pump_->totals().usage.tokens_estimated, 50);
  EXPECT_EQ(pump_->totals().usage.money, 0.25 + 0.125);
  EXPECT_EQ(events("model_reply").back()["outcome"], "lost");
  take();
  EXPECT_EQ(proposer_->asks.at(0).number, 5) << "numbers go on";
  proposer_->news = {delivery("d9", kSource)};
  take();
  EXPECT_EQ(added_.size(), 1u) << "its source is known";
}

TEST_F(ProposalPumpTest, WhatIsUnderWayAtTheEndIsCancelledInTheRecord) {
  proposer_->news = {request("q1"), request("q2")};
  take();
  proposer_->news = {reply("q2"), delivery("late", kSource)};
  ASSERT_TRUE(pump_->close(*log_, {}).ok());
  const auto replies = events("model_reply");
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0]["outcome"], "delivered");
  EXPECT_EQ(replies[1]["outcome"], "cancelled");
  EXPECT_EQ(replies[1]["money"], 0.125) << "its prompt was read";
  EXPECT_TRUE(added_.empty());
}

TEST_F(ProposalPumpTest, WhoDidWhatComesFromTheArchiveAlone) {
  proposer_->news = {request("q1"), reply("q1"), delivery("d1", kSource)};
  take();
  Candidate candidate = built(kSource).candidate;
  candidate.idea_id = added_.at(0).idea.id;
  Archive& archive = log_->archive();
  ASSERT_TRUE(archive.append_candidate(candidate).ok());
  for (const char* verdict : {"accepted", "wrong_value"})
    ASSERT_TRUE(
        archive.append_event("observation", {{"candidate_id", "c1"}, {"verdict", verdict}}).ok());
  for (const double speedup : {1.5, 3.0})
    ASSERT_TRUE(
        archive
            .append_event("champion",
                          {{"candidate_id", "c1"}, {"case_name", "n16"}, {"speedup", speedup}})
            .ok());
  const Json all = who_did_what(archive).value();
  const Json& model = all["models"].at(0);
  EXPECT_EQ(model["name"], "llm:small");
  EXPECT_EQ(model["requests"], 1);
  EXPECT_EQ(model["retries"], 2);
  EXPECT_EQ(model["outcomes"]["delivered"], 1);
  EXPECT_EQ(model["tokens_in"], 30);
  EXPECT_EQ(model["success_rate"], 0.5);
  EXPECT_EQ(model["champions"], 2);
  EXPECT_DOUBLE_EQ(model["gain"].get<double>(), 3);
  EXPECT_EQ(all["categories"].at(0)["name"], "layout");
  EXPECT_EQ(all["proposers"].at(0)["name"], "llm:test");
  EXPECT_EQ(all["proposers"].at(0)["champions"], 2);
}

}  // namespace
}  // namespace kbeam
