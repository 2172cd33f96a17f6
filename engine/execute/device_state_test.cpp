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

// Every user of the machine may write such a file.
TEST_F(DeviceStateTest, AHostileRecordIsOnlyShown) {
  const auto text_of = [&](const std::string& record) {
    EXPECT_TRUE(write_file(folder_ / "kbeam-gpu-GPU-1.state", record + "\n").ok());
    const auto found = DeviceStates(folder_).find("GPU-1");
    return found ? found->text() : "";
  };
  const auto record = [](const std::string& text, const std::string& unix_ms) {
    return R"({"event":"quarantined","uuid":")" + text + R"(","name":")" + text +
           R"(","evidence":")" + text + R"(","unix_ms":)" + unix_ms + "}";
  };
  for (const char* unix_ms : {"9223372036854775807", "-9223372036854775808", "-1"})
    EXPECT_THAT(text_of(record("a", unix_ms)), HasSubstr("is quarantined since")) << unix_ms;
  const std::string text = text_of(record(R"(\u001b[2J\u009b0m\n)", "1"));
  EXPECT_THAT(text, HasSubstr("[2J"));
  EXPECT_EQ(text.find_first_of("\x1b\x9b\n"), std::string::npos) << text;
  EXPECT_LT(text_of(record(std::string(1 << 20, 'x'), "1")).size(), 2000U);
}

TEST_F(DeviceStateTest, ALinkInPlaceOfARecordIsNotFollowed) {
  ASSERT_TRUE(write_file(folder_ / "secret", "secret").ok());
  fs::create_symlink("secret", folder_ / "kbeam-gpu-GPU-1.state");
  const auto found = DeviceStates(folder_).find("GPU-1");
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->text(), HasSubstr("is a symbolic link"));
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
