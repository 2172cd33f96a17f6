#include "execute/device_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class DeviceStateTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_folder(fs::temp_directory_path(), "state-"); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(DeviceStateTest, RemembersAQuarantineUntilItIsCleared) {
  const DeviceStates states(folder_);
  EXPECT_FALSE(states.find("GPU-1").has_value());
  ASSERT_TRUE(states.quarantine({"GPU-1", "A GPU", "the probe gave 7 for 8", 1796000000000}).ok());
  const auto found = DeviceStates(folder_).find("GPU-1");
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->text(), HasSubstr("A GPU (GPU-1) is quarantined since 2026-11-30"));
  EXPECT_THAT(found->text(), HasSubstr("the probe gave 7 for 8"));
  EXPECT_FALSE(states.find("GPU-2").has_value());
  EXPECT_THAT(states.all(), SizeIs(1));
  ASSERT_TRUE(states.clear("GPU-1", "the probe passed", 1796000001000).ok());
  EXPECT_FALSE(states.find("GPU-1").has_value());
  EXPECT_THAT(states.all(), IsEmpty());
}

TEST_F(DeviceStateTest, KeepsTheHistory) {
  const DeviceStates states(folder_);
  ASSERT_TRUE(states.quarantine({"GPU-1", "A GPU", "first", 1}).ok());
  ASSERT_TRUE(states.clear("GPU-1", "good", 2).ok());
  ASSERT_TRUE(states.quarantine({"GPU-1", "A GPU", "second", 3}).ok());
  const std::string record = *read_file(folder_ / "kbeam-gpu-GPU-1.state");
  EXPECT_THAT(record, HasSubstr("first"));
  EXPECT_EQ(states.find("GPU-1")->evidence, "second");
}

TEST_F(DeviceStateTest, ADamagedRecordIsAQuarantine) {
  const DeviceStates states(folder_);
  ASSERT_TRUE(write_file(folder_ / "kbeam-gpu-GPU-1.state", "{\"event\":\"clea\n").ok());
  ASSERT_TRUE(states.find("GPU-1").has_value());
  EXPECT_THAT(states.find("GPU-1")->evidence, HasSubstr("cannot be read"));
  fs::create_symlink("/nowhere", folder_ / "kbeam-gpu-GPU-2.state");
  EXPECT_TRUE(states.find("GPU-2").has_value());
}

TEST_F(DeviceStateTest, IsOpenToEveryUser) {
  const mode_t old = ::umask(0077);
  const DeviceStates states(folder_);
  ASSERT_TRUE(states.quarantine({"GPU-1", "A GPU", "first", 1}).ok());
  const auto lock = states.lock("GPU-1", nullptr);
  ::umask(old);
  ASSERT_TRUE(lock.ok());
  for (const char* name : {"kbeam-gpu-GPU-1.state", "kbeam-gpu-GPU-1.lock"}) {
    struct stat facts {};
    ASSERT_EQ(::stat((folder_ / name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777, 0666U) << name;
  }
}

TEST_F(DeviceStateTest, AStrangeNameStaysInItsFolder) {
  const DeviceStates states(folder_ / "deep");
  fs::create_directory(folder_ / "deep");
  ASSERT_TRUE(states.quarantine({"../../x", "A GPU", "first", 1}).ok());
  EXPECT_TRUE(states.find("../../x").has_value());
  EXPECT_TRUE(fs::exists(folder_ / "deep" / "kbeam-gpu-______x.state"));
}

TEST_F(DeviceStateTest, LocksOfTwoDevicesAreTwo) {
  const DeviceStates states(folder_);
  const auto first = states.lock("GPU-1", nullptr);
  const auto second = states.lock("GPU-2", nullptr);
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(second.ok());
}

}  // namespace
}  // namespace kbeam
