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

TEST(Submissions, AllThatIsWrongWithOneIsSaid) {
  Submission submission;
  submission.idea = {.family = "rows", .text = "hold rows in registers"};
  submission.source = "#include <kbeam/candidate.h>\n";
  submission.source_name = "rows.cpp";
  EXPECT_EQ(mistakes_in(submission, "cpu"), "");
  EXPECT_NE(mistakes_in(submission, "cuda"), "") << "for the other target";
  for (const std::string& family :
       {std::string(), std::string("a b"), std::string(20'000, 'a'), std::string("\x1b[31mred")}) {
    Submission other = submission;
    other.idea.family = family;
    EXPECT_NE(mistakes_in(other, "cpu").find("family"), std::string::npos) << family;
  }
  for (const std::string& text :
       {std::string(), std::string("two\nlines"), std::string("\x1b[2J"), std::string(2001, 'a')}) {
    Submission other = submission;
    other.idea.text = text;
    EXPECT_NE(mistakes_in(other, "cpu").find("idea"), std::string::npos) << text;
  }
  for (const std::string& source : {std::string(), std::string("root:x:0:0:root:/root:/bin/sh\n"),
                                    std::string(600 << 10, ' ')}) {
    Submission other = submission;
    other.source = source;
    EXPECT_NE(mistakes_in(other, "cpu"), "");
  }
  submission.idea = {};
  submission.source_name = "a\nb.cpp";
  const std::string all = mistakes_in(submission, "cpu");
  for (const char* about : {"idea", "family", "file name"})
    EXPECT_NE(all.find(about), std::string::npos) << all;
}

TEST_F(InboxTest, WhatIsSaidIsALine) {
  ASSERT_TRUE(inbox_.drop_message({.text = "a\nanother says: b\x1b[2J", .who = "x\x1b[31m"}).ok());
  const auto messages = inbox_.messages();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].message->text, "a another says: b [2J");
  EXPECT_EQ(messages[0].message->who, "x [31m");
}

}  // namespace
}  // namespace kbeam
