#include "base/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/own_lock.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = make_temporary_folder(testing::TempDir(), "kbeam_files_test_");
    ASSERT_TRUE(made.ok()) << made.error().text();
    folder_ = *made;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(FilesTest, reads_back_what_was_written) {
  const std::string content("line\n\0binary\xff", 13);
  ASSERT_TRUE(write_file(folder_ / "a", content).ok());
  const auto back = read_file(folder_ / "a");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, content);
}

TEST_F(FilesTest, replaces_and_leaves_nothing_beside) {
  ASSERT_TRUE(write_file(folder_ / "a", "old and longer").ok());
  ASSERT_TRUE(write_file(folder_ / "a", "new").ok());
  EXPECT_EQ(*read_file(folder_ / "a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(FilesTest, a_reader_that_has_the_old_file_open_keeps_it) {
  ASSERT_TRUE(write_file(folder_ / "a", "old").ok());
  std::ifstream reader(folder_ / "a");
  ASSERT_TRUE(write_file(folder_ / "a", "new").ok());
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
}

TEST_F(FilesTest, what_a_killed_writer_left_is_removed_and_nothing_else) {
  const fs::path left = folder_ / "report.html.part-abcdefgh";
  const fs::path held = folder_ / "report.html.part-ijklmnop";
  const fs::path named_alike = folder_ / "spare.part-1";
  for (const fs::path& path : {left, held, named_alike}) std::ofstream(path) << "half";
  const auto writer = OwnLock::try_take(held);  // what write_file() does while it writes
  ASSERT_TRUE(writer.has_value());
  EXPECT_THAT(remove_abandoned_parts(folder_), testing::ElementsAre(left));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(named_alike));
}

TEST_F(FilesTest, a_lock_is_for_one_and_ends_with_its_holder) {
  {
    const auto mine = OwnLock::try_take(folder_);
    EXPECT_TRUE(mine.has_value());
    EXPECT_FALSE(OwnLock::try_take(folder_).has_value());
  }
  EXPECT_TRUE(OwnLock::try_take(folder_).has_value());
  EXPECT_FALSE(OwnLock::try_take(folder_ / "nothing").has_value());
}

TEST_F(FilesTest, errors_name_the_file_and_the_reason) {
  const auto missing = read_file(folder_ / "missing");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().text(), HasSubstr("missing: No such file"));
  const auto nowhere = write_file(folder_ / "no/such/folder/a", "x");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::io);
  EXPECT_THAT(nowhere.error().text(), HasSubstr("no/such/folder"));
}

TEST_F(FilesTest, temporary_folders_are_distinct_and_parents_are_made) {
  const auto one = make_temporary_folder(folder_ / "deep/er", "x-");
  const auto two = make_temporary_folder(folder_ / "deep/er", "x-");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_NE(*one, *two);
  EXPECT_TRUE(fs::is_directory(*one) && fs::is_empty(*one));
  EXPECT_THAT(one->filename().string(), testing::StartsWith("x-"));
}

TEST_F(FilesTest, a_temporary_folder_below_a_file_is_an_error) {
  ASSERT_TRUE(write_file(folder_ / "a", "").ok());
  EXPECT_FALSE(make_temporary_folder(folder_ / "a", "x-").ok());
}

TEST_F(FilesTest, cache_folder_follows_the_environment) {
  const auto saved = [](const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
  };
  const std::string cache = saved("XDG_CACHE_HOME");
  const std::string home = saved("HOME");
  ::setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(cache_folder(), fs::path("/some/cache/kbeam"));
  ::setenv("XDG_CACHE_HOME", "", 1);
  ::setenv("HOME", "/some/home", 1);
  EXPECT_EQ(cache_folder(), fs::path("/some/home/.cache/kbeam"));
  cache.empty() ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  home.empty() ? ::unsetenv("HOME") : ::setenv("HOME", home.c_str(), 1);
}

}  // namespace
}  // namespace kbeam
