#include "loop/steering.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "loop/campaign_log.h"
#include "loop/campaign_search.h"
#include "loop/progress.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

std::vector<Sketch> sketches() {
  std::vector<Sketch> made;
  for (const char* family : {"simd", "blocked"}) {
    Submission submission;
    submission.idea.id = std::string("idea ") + family;
    submission.idea.family = family;
    submission.source = std::string("// ") + family;
    submission.source_name = std::string(family) + ".cpp";
    made.push_back(make_sketch(submission));
    made.back().normalised_source = submission.source;
  }
  return made;
}

class SteeringTest : public testing::Test {
 protected:
  fs::path folder_ = make_temporary_folder("/tmp", "kbeam-steering-").value();
  Inbox inbox_{folder_};
  std::unique_ptr<Search> search_ = make_search_of();
  std::unique_ptr<CampaignLog> log_ = std::make_unique<CampaignLog>(
      Archive::create(folder_ / "archive.sqlite", CampaignConfig{.run_id = "r1"}, {}).value());
  SilentProgress progress_;
  SteeringState state_;

  static std::unique_ptr<Search> make_search_of() {
    SearchConfig config;
    config.cases = {"n16"};
    return Search::make(config, sketches());
  }
  Listener listener() { return {inbox_, *log_, *search_, progress_, state_, "cpu"}; }
  void say(SteeringAction action, const std::string& words = "") {
    SteeringMessage message{.action = action, .who = "a tester"};
    (action == SteeringAction::say ? message.text : message.family) = words;
    ASSERT_TRUE(inbox_.drop_message(message).ok());
  }
  bool retired(const std::string& family) const {
    for (const FamilyState& one : search_->families())
      if (one.name == family) return one.retired;
    return false;
  }
  int count(const std::string& kind) const {
    int found = 0;
    const std::vector<Event> events = log_->archive().events().value();
    for (const Event& event : events) found += event.kind == kind ? 1 : 0;
    return found;
  }
  void TearDown() override { fs::remove_all(folder_); }
};

TEST_F(SteeringTest, WhatIsSaidIsWrittenDownAndTakesEffectOnce) {
  say(SteeringAction::say, "try a wider vector");
  say(SteeringAction::drop, "simd");
  ASSERT_TRUE(take_inbox(listener()).ok());
  EXPECT_TRUE(inbox_.messages().empty());
  EXPECT_EQ(count("steering"), 2);
  EXPECT_TRUE(retired("simd"));
  EXPECT_EQ(state_.texts(), std::vector<std::string>{"a tester: try a wider vector"});
  EXPECT_GT(state_.taken.front().asked_unix_ms, 0);
  EXPECT_TRUE(state_.has_dropped("simd"));
  say(SteeringAction::protect, "simd");
  ASSERT_TRUE(take_inbox(listener()).ok());
  EXPECT_FALSE(retired("simd"));
  EXPECT_FALSE(state_.has_dropped("simd"));
}

TEST_F(SteeringTest, AMessageWhoseFileOutlivedAKillCountsOnce) {
  say(SteeringAction::say, "once");
  const fs::path file = inbox_.messages().front().file;
  const std::string text = read_file(file).value();
  ASSERT_TRUE(take_inbox(listener()).ok());
  ASSERT_TRUE(write_file(file, text).ok());
  ASSERT_TRUE(take_inbox(listener()).ok());
  EXPECT_EQ(count("steering"), 1);
  EXPECT_TRUE(inbox_.messages().empty());
}

TEST_F(SteeringTest, AResumedRunHasHeardAllThatWasSaid) {
  say(SteeringAction::drop, "blocked");
  say(SteeringAction::say, "keep rows in registers");
  say(SteeringAction::pause);
  ASSERT_TRUE(take_inbox(listener()).ok());
  search_ = make_search_of();
  const auto history = log_->replay(*search_, make_sketch);
  ASSERT_TRUE(history.ok());
  EXPECT_TRUE(retired("blocked"));
  EXPECT_FALSE(retired("simd"));
  EXPECT_TRUE(history->steering.paused);
  EXPECT_EQ(history->steering.texts().size(), 1u);
  state_ = history->steering;
  say(SteeringAction::pause);  // said to the run before it was stopped
  ASSERT_TRUE(end_pause(listener(), "kbeam resume").ok());
  EXPECT_FALSE(state_.paused);
  EXPECT_TRUE(inbox_.messages().empty());
  EXPECT_EQ(count("steering"), 4);
  ASSERT_TRUE(log_->new_notices(search_->notices()).ok());
  ASSERT_TRUE(log_->new_notices({{"dropped family blocked", "blocked", "asked for by a tester"}})
                  .ok());  // known by now
  EXPECT_EQ(log_->archive().decisions()->size(), 1u);
}

TEST_F(SteeringTest, APausedRunListensUntilItIsResumed) {
  ASSERT_TRUE(wait_while_paused(listener(), [] { return false; }).ok());  // nobody paused it
  say(SteeringAction::pause);
  ASSERT_TRUE(take_inbox(listener()).ok());
  int asked = 0;
  const auto resume_at_the_second_look = [&] {
    if (++asked == 2) {
      say(SteeringAction::drop, "simd");
      say(SteeringAction::resume);
    }
    return false;
  };
  ASSERT_TRUE(wait_while_paused(listener(), resume_at_the_second_look).ok());
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(state_.paused);
  EXPECT_TRUE(retired("simd"));
  say(SteeringAction::pause);
  ASSERT_TRUE(take_inbox(listener()).ok());
  ASSERT_TRUE(wait_while_paused(listener(), [] { return true; }).ok());  // stopped meanwhile
  EXPECT_TRUE(state_.paused);
}

TEST_F(SteeringTest, AFamilyThatIsNotThereIsRefusedInTheRecord) {
  say(SteeringAction::drop, "smid");
  ASSERT_TRUE(take_inbox(listener()).ok());
  const auto decisions = log_->archive().decisions();
  ASSERT_TRUE(decisions.ok());
  ASSERT_EQ(decisions->size(), 1u);
  EXPECT_EQ(decisions->front().what, "steering refused");
  EXPECT_EQ(decisions->front().why, "there is no family smid");
  EXPECT_FALSE(state_.has_dropped("smid"));
}

TEST_F(SteeringTest, ASubmissionToADroppedFamilyIsRefused) {
  say(SteeringAction::drop, "simd");
  Submission submission;
  submission.idea.id = "mine";
  submission.idea.family = "simd";
  submission.idea.text = "a line";
  submission.source = "// #include <kbeam/candidate.h>";
  submission.source_name = "mine.cpp";
  ASSERT_TRUE(inbox_.drop_submission(submission).ok());
  ASSERT_TRUE(take_inbox(listener()).ok());
  EXPECT_EQ(count("submission"), 0);
  submission.idea.family = "new";
  ASSERT_TRUE(inbox_.drop_submission(submission).ok());
  submission.source_name = "mine.cu";  // for the other target
  ASSERT_TRUE(inbox_.drop_submission(submission).ok());
  ASSERT_TRUE(take_inbox(listener()).ok());
  EXPECT_EQ(count("submission"), 1);
  EXPECT_EQ(log_->archive().decisions()->back().what, "submission refused");
  EXPECT_TRUE(inbox_.waiting().empty());
}

TEST_F(SteeringTest, AMangledMessageIsDroppedAndHarmsNothing) {
  fs::create_directories(folder_ / "inbox");
  for (const char* text :
       {"{", "{\"id\": 3}", "[]",
        R"({"id":"x","action":"launch","text":"","family":"","who":"","asked_unix_ms":1})"})
    ASSERT_TRUE(write_file(folder_ / "inbox/steer-1.json", text).ok() &&
                take_inbox(listener()).ok() && inbox_.messages().empty());
  EXPECT_EQ(count("steering"), 0);
}

}  // namespace
}  // namespace kbeam
