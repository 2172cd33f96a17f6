#include "loop/inbox.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"

namespace kbeam {
namespace {

class InboxTest : public testing::Test {
 protected:
  std::filesystem::path folder_ = make_temporary_folder("/tmp", "kbeam-inbox-").value();
  Inbox inbox_{folder_};
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(InboxTest, GivesEverySubmissionOnceAndInOrder) {
  for (const char* name : {"first.cpp", "second.cpp"}) {
    Submission submission;
    submission.idea.family = "mine";
    submission.source = "// code";
    submission.source_name = name;
    ASSERT_TRUE(inbox_.drop_submission(submission).ok());
  }
  const auto waiting = inbox_.waiting();
  ASSERT_EQ(waiting.size(), 2u);
  ASSERT_TRUE(waiting[0].submission.ok());
  EXPECT_EQ(waiting[0].submission->idea.family, "mine");
  EXPECT_EQ(waiting[0].submission->source, "// code");
  inbox_.discard(waiting[0].file);
  EXPECT_EQ(inbox_.waiting().size(), 1u);
}

TEST_F(InboxTest, TakesAStopOnce) {
  EXPECT_FALSE(inbox_.take_stop());
  ASSERT_TRUE(inbox_.drop_stop().ok());
  EXPECT_TRUE(inbox_.take_stop());
  EXPECT_FALSE(inbox_.take_stop());
}

TEST_F(InboxTest, ReportsAMangledFileInsteadOfDyingOfIt) {
  std::filesystem::create_directories(folder_ / "inbox");
  std::ofstream(folder_ / "inbox/submit-1.json") << "{\"idea\": 3";
  const auto waiting = inbox_.waiting();
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_FALSE(waiting[0].submission.ok());
}

}  // namespace
}  // namespace kbeam
