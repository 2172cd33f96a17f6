#include "apps/worker/device_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/worker/seats_fixture.h"
#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DeviceProbeTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_folder(fs::temp_directory_path(), "probe-"); }
  void TearDown() override { fs::remove_all(folder_); }
  Result<ProbeOutcome> probe(ProbeAction action) {
    return probe_device({{}, "GPU-1", "A GPU", action}, lab_.tools(), devices(), lab_.clock);
  }
  DeviceStates devices() const { return DeviceStates(folder_); }
  fs::path folder_;
  SeatLab lab_;
};

TEST_F(DeviceProbeTest, ASoundDeviceIsLeftAlone) {
  const auto outcome = probe(ProbeAction::look);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->sound);
  EXPECT_EQ(outcome->text(), "A GPU: the probe passed");
  EXPECT_FALSE(devices().find("GPU-1").has_value());
}

TEST_F(DeviceProbeTest, OnlyClearLiftsAQuarantine) {
  ASSERT_TRUE(devices().quarantine({"GPU-1", "A GPU", "it gave 7 for 8", 1000}).ok());
  const auto looked = probe(ProbeAction::look);
  ASSERT_TRUE(looked.ok());
  EXPECT_THAT(looked->text(), HasSubstr("it gave 7 for 8"));
  EXPECT_TRUE(devices().find("GPU-1").has_value());
  const auto cleared = probe(ProbeAction::clear);
  ASSERT_TRUE(cleared.ok());
  EXPECT_FALSE(cleared->quarantine.has_value());
  EXPECT_FALSE(devices().find("GPU-1").has_value());
}

TEST_F(DeviceProbeTest, AWrongAnswerQuarantinesEvenWhenAskedToClear) {
  lab_.behaviour[SeatRole::witness].probe = [](int) { return false; };
  const auto outcome = probe(ProbeAction::clear);
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->sound);
  EXPECT_TRUE(devices().find("GPU-1").has_value());
}

TEST_F(DeviceProbeTest, ADeviceThatNoProcessCanUseIsQuarantined) {
  lab_.behaviour[SeatRole::witness].start_failure =
      SeatFailure{Verdict::crashed, "no context", false};
  ASSERT_TRUE(probe(ProbeAction::look).ok());
  EXPECT_THAT(devices().find("GPU-1")->evidence, HasSubstr("no context"));
}

TEST_F(DeviceProbeTest, TroublesThatAreNotTheDevicesLeaveItAlone) {
  lab_.behaviour[SeatRole::witness].start_failure =
      SeatFailure{Verdict::over_memory, "somebody else holds its memory", false};
  EXPECT_FALSE(probe(ProbeAction::look).ok());
  lab_.behaviour[SeatRole::witness].start_failure.reset();
  lab_.behaviour[SeatRole::witness].start_error =
      Error{ErrorCode::io, "start a seat", "no more processes", ""};
  EXPECT_FALSE(probe(ProbeAction::look).ok());
  EXPECT_FALSE(devices().find("GPU-1").has_value());
}

}  // namespace
}  // namespace kbeam
