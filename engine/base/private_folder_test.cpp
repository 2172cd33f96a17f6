#include "base/private_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

class PrivateFolderTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("TMPDIR", temporary_.c_str(), 1); }
  void TearDown() override {
    ::unsetenv("TMPDIR");
    fs::remove_all(temporary_);
  }
  fs::path temporary_ = make_temporary_folder("/tmp", "kbeam-private-test-").value();
};

TEST_F(PrivateFolderTest, IsItsOwnersAloneWhateverTheMask) {
  const mode_t before = ::umask(0);
  const auto folder = PrivateFolder::make("x-");
  ::umask(before);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(fs::status(folder->path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(folder->path().parent_path(), temporary_);
}

TEST_F(PrivateFolderTest, GoesWithTheObject) {
  fs::path path;
  {
    Result<PrivateFolder> folder = PrivateFolder::make("x-");
    const PrivateFolder moved = std::move(*folder);
    path = moved.path();
    std::ofstream(path / "file") << "x";
    EXPECT_TRUE(fs::exists(path / "file"));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PrivateFolderTest, WhatAKilledProcessLeftGoesAndWhatIsInUseStays) {
  fs::create_directories(temporary_ / "x-abanxnedxx/deep");
  for (const char* name : {"y-abanxnedxx", "x-mine", "x-1234567890"})
    fs::create_directories(temporary_ / name);
  const auto one = PrivateFolder::make("x-");
  const auto two = PrivateFolder::make("x-");
  EXPECT_FALSE(fs::exists(temporary_ / "x-abanxnedxx"));
  for (const char* name : {"y-abanxnedxx", "x-mine", "x-1234567890"})
    EXPECT_TRUE(fs::exists(temporary_ / name)) << name;
  EXPECT_TRUE(fs::exists(one->path()) && fs::exists(two->path()));
}

TEST_F(PrivateFolderTest, WithoutAPlaceForItIsAnErrorThatSaysWhatToDo) {
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  const auto folder = PrivateFolder::make("x-");
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().text().find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace kbeam
