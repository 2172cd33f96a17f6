#include "apps/worker/worker_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

using Action = WorkerOptions::Action;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(WorkerOptions, FoldersAndNumbers) {
  const auto options = parse_worker_options({"a", "--device", "3", "--pieces-s", "540", "b"});
  ASSERT_TRUE(options.ok()) << options.error().text();
  EXPECT_EQ(options->action, Action::run);
  EXPECT_THAT(options->folders, ElementsAre("a", "b"));
  EXPECT_EQ(options->device, 3);
  EXPECT_EQ(options->pieces_s, 540);
}

TEST(WorkerOptions, AWrapperIsACommandInWords) {
  const auto options =
      parse_worker_options({"--plain", "a", "--wrapper", "compute-sanitizer --tool  memcheck"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->action, Action::plain);
  EXPECT_THAT(options->wrapper, ElementsAre("compute-sanitizer", "--tool", "memcheck"));
}

TEST(WorkerOptions, ProbesMayClear) {
  const auto options = parse_worker_options({"--probe", "--clear"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->action, Action::probe);
  EXPECT_TRUE(options->clear);
}

TEST(WorkerOptions, MistakesAreExplained) {
  const auto said = [](const std::vector<std::string>& arguments) {
    const auto options = parse_worker_options(arguments);
    return options.ok() ? std::string("nothing") : options.error().text();
  };
  EXPECT_THAT(said({}), HasSubstr("no task folder"));
  EXPECT_THAT(said({"a", "--devise", "1"}), HasSubstr("did you mean --device?"));
  EXPECT_THAT(said({"a", "--device", "-1"}), HasSubstr("no device number"));
  EXPECT_THAT(said({"a", "--device"}), HasSubstr("lacks its value"));
  EXPECT_THAT(said({"a", "--pieces-s", "soon"}), HasSubstr("no number of seconds"));
  EXPECT_THAT(said({"a", "--clear"}), HasSubstr("--clear goes with --probe"));
  EXPECT_THAT(said({"a", "--wrapper", "gdb"}), HasSubstr("--wrapper goes with --plain"));
  EXPECT_THAT(said({"--plain", "a", "b"}), HasSubstr("one folder"));
  EXPECT_THAT(said({"--probe", "a"}), HasSubstr("takes no folder"));
}

TEST(WorkerOptions, HelpNeedsNothingElse) {
  const auto options = parse_worker_options({"--help"});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->action, Action::help);
  EXPECT_THAT(worker_help(), HasSubstr("Exit codes"));
}

}  // namespace
}  // namespace kbeam
