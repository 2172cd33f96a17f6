#include "execute/carried_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CarriedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *make_temporary_folder(fs::temp_directory_path(), "carried-");
    folder_ = root_ / "folder";
    fs::create_directories(folder_ / "plans");
    ASSERT_TRUE(write_file(root_ / "secret", "secret").ok());
    ASSERT_TRUE(write_file(folder_ / "plans/one", "one").ok());
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string refusal(const std::string& name) {
    const auto read = read_carried_file(folder_, name);
    return read.ok() ? "read: " + *read : read.error().happened;
  }
  fs::path root_;
  fs::path folder_;
};

TEST_F(CarriedFileTest, ReadsFilesOfTheFolder) {
  EXPECT_EQ(*read_carried_file(folder_, "plans/one"), "one");
  ASSERT_TRUE(write_file(folder_ / "empty", "").ok());
  EXPECT_EQ(*read_carried_file(folder_, "empty"), "");
  EXPECT_TRUE(is_carried(folder_, "empty"));
  EXPECT_FALSE(is_carried(folder_, "nothing"));
  EXPECT_EQ(read_carried_file(folder_, "nothing").error().code, ErrorCode::not_found);
}

TEST_F(CarriedFileTest, TheFolderItselfMayBeALink) {
  fs::create_directory_symlink(folder_, root_ / "link");
  EXPECT_EQ(*read_carried_file(root_ / "link", "plans/one"), "one");
}

TEST_F(CarriedFileTest, NamesThatLeadOutAreRefused) {
  for (const std::string name : {"../secret", "plans/../../secret", "plans/../plans/one", "./empty",
                                 "", "/etc/passwd", "plans/", ".."})
    EXPECT_THAT(refusal(name), HasSubstr("leads out of the folder")) << name;
  EXPECT_THAT(refusal((root_ / "secret").string()), HasSubstr("leads out of the folder"));
}

TEST_F(CarriedFileTest, LinksAreRefusedWhereverTheyLead) {
  fs::create_symlink("../secret", folder_ / "out");
  fs::create_symlink("plans/one", folder_ / "in");
  fs::create_symlink("loop", folder_ / "loop");
  fs::create_symlink("nowhere", folder_ / "dangling");
  fs::create_directory_symlink("..", folder_ / "up");
  for (const std::string name : {"out", "in", "loop", "dangling", "up/secret"})
    EXPECT_THAT(refusal(name), HasSubstr("is a symbolic link")) << name;
  EXPECT_TRUE(is_carried(folder_, "loop"));
  EXPECT_TRUE(is_carried(folder_, "dangling"));
}

TEST_F(CarriedFileTest, WhatIsNoRegularFileIsRefusedAndDoesNotBlock) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const std::string name : {"pipe", "plans"})
    EXPECT_EQ(refusal(name), "it is no regular file") << name;
  EXPECT_EQ(read_carried_file(folder_, "plans/one/more").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace kbeam
