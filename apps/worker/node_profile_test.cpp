#include "apps/worker/node_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/worker/seats_fixture.h"
#include "execute/task_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NodeProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(fs::temp_directory_path(), "nodes-");
    const TaskForTests made = task_for_tests(folder_);
    ASSERT_TRUE(write_task_folder(made.task, made.files, folder_ / "task").ok());
    auto loaded = read_task_folder(folder_ / "task");
    ASSERT_TRUE(loaded.ok());
    task_ = std::move(*loaded);
    request_.start_seat = [this](const SeatOptions& options, std::optional<SeatFailure>& failure) {
      return lab_.tools().start_seat(SeatRole::candidate, options, failure);
    };
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
  LoadedTask task_;
  SeatLab lab_;
  NodeProfileRequest request_;
};

TEST_F(NodeProfileTest, TimesTheNodesOfEveryCaseWithoutTheEmptyGap) {
  const auto profile = profile_nodes(task_, request_);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ((*profile)["device"], "A GPU");
  ASSERT_EQ((*profile)["cases"].size(), 3u);
  const Json& first = (*profile)["cases"][0];
  EXPECT_EQ(first["total_ns"], 9000.0);
  EXPECT_EQ(first["nodes"][0]["kernel"], "candidate");
  EXPECT_EQ(first["nodes"][0]["median_ns"], 4000.0);
  EXPECT_TRUE((*profile)["left_out"].empty());
}

TEST_F(NodeProfileTest, AWrongCaseIsLeftOutWithTheReason) {
  lab_.behaviour[SeatRole::candidate].report = [](int index) {
    CheckReport report;
    report.verdict = index == 1 ? Verdict::wrong_value : Verdict::accepted;
    report.sentence = "element 3 is off";
    return report;
  };
  const auto profile = profile_nodes(task_, request_);
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ((*profile)["cases"].size(), 2u);
  ASSERT_EQ((*profile)["left_out"].size(), 1u);
  EXPECT_THAT((*profile)["left_out"][0].get<std::string>(), HasSubstr("element 3 is off"));
}

}  // namespace
}  // namespace kbeam
