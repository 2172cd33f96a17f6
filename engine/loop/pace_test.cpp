#include "loop/pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "archive/archive.h"
#include "base/files.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Pace kPace{.evaluation_s = 2, .evaluation_device_s = 1, .rest_s = 20};

TEST(Pace, EveryLimitHasItsRoom) {
  const std::string room =
      describe_room(kPace, {.wall_s = 10, .evaluations = 5, .device_s = 10},
                    {.wall_s = 130, .evaluations = 45, .device_s = 60, .tokens = 9, .money = 9});
  EXPECT_THAT(room, HasSubstr("2.0 s (1.0 s of the device)"));
  EXPECT_THAT(room, HasSubstr("--budget has room for about 50"));
  EXPECT_THAT(room, HasSubstr("--device-time for about 40"));
  EXPECT_THAT(room, HasSubstr("the 40 left of --evaluations take about 100 s"));
}

TEST(Pace, NoLimitNoRoomAndNeverLessThanNone) {
  EXPECT_THAT(describe_room(kPace, {}, {}), Not(HasSubstr("--")));
  EXPECT_THAT(describe_room(kPace, {.wall_s = 500}, {.wall_s = 130}),
              HasSubstr("room for about 0"));
  EXPECT_EQ(describe_room({}, {}, {.wall_s = 130}), "the pace is not known");
}

TEST(Pace, OfTheBaselinesControl) {
  BaselineFacts baseline;
  baseline.control_s = 31;
  baseline.control_calls = 31;  // a second for both sides of every case
  const Pace pace = pace_of(baseline, {.pairs_per_process = 5, .processes = 1}, 40);
  EXPECT_DOUBLE_EQ(pace.evaluation_s, 6);
  EXPECT_EQ(pace.rest_s, 40);
}

class EarlierRunTest : public ::testing::Test {
 protected:
  void SetUp() override { runs_ = *make_temporary_folder("/tmp", "kbeam-pace-"); }
  void TearDown() override { std::filesystem::remove_all(runs_); }
  void add(const std::string& id, const std::string& problem_hash, const Json& summary) {
    CampaignConfig config = config_;
    config.run_id = id;
    config.problem_hash = problem_hash;
    std::filesystem::create_directories(runs_ / id);
    auto archive = Archive::create(runs_ / id / "archive.sqlite", config, {});
    ASSERT_TRUE(archive.ok()) << archive.error().text();
    if (!summary.is_null()) {
      ASSERT_TRUE((*archive)->append_event("stop", summary).ok());
    }
  }
  CampaignConfig config_{.problem_hash = "same", .target = "cpu"};
  std::filesystem::path runs_;
};

TEST_F(EarlierRunTest, TheLatestThatTellsThePace) {
  const Json told{
      {"evaluations", 30}, {"evaluations_per_minute", 30.0}, {"wall_s", 80.0}, {"device_s", 40.0}};
  add("20260101-a", "same", {{"evaluations", 30}, {"evaluations_per_minute", 9.0}});
  add("20260102-b", "same", told);
  add("20260103-c", "other", told);
  add("20260104-d", "same", nullptr);  // killed
  add("20260105-e", "same", {{"evaluations", 1}, {"evaluations_per_minute", 60.0}});
  add("20260106-f", "same", {{"evaluations", 30}, {"evaluations_per_minute", nullptr}});
  const auto earlier = find_earlier_run(runs_, config_);
  ASSERT_TRUE(earlier);
  EXPECT_EQ(earlier->run_id, "20260102-b");
  EXPECT_DOUBLE_EQ(earlier->pace.evaluation_s, 2);
  EXPECT_DOUBLE_EQ(earlier->pace.evaluation_device_s, 1);
  EXPECT_DOUBLE_EQ(earlier->pace.rest_s, 20);
  config_.target = "cuda";
  EXPECT_FALSE(find_earlier_run(runs_, config_));
  EXPECT_FALSE(find_earlier_run(runs_ / "nowhere", config_));
}

}  // namespace
}  // namespace kbeam
