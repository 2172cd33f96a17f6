#include "execute/task_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "execute/task_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TaskProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(fs::temp_directory_path(), "task-");
    task_.task = task_for_tests(folder_).task;
    task_.task_hash = "99";
  }
  void TearDown() override { fs::remove_all(folder_); }
  SavedProgress some() const {
    SavedProgress progress;
    progress.now = {result_for_tests(task_), {"small", "hidden"}};
    progress.last_good = {result_for_tests(task_), {"small"}};
    return progress;
  }
  fs::path folder_;
  LoadedTask task_;
};

TEST_F(TaskProgressTest, IsNothingAtFirst) {
  const auto read = read_progress(task_, folder_);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->has_value());
}

TEST_F(TaskProgressTest, IsReadBack) {
  ASSERT_TRUE(write_progress(task_.task, some(), folder_).ok());
  const auto read = read_progress(task_, folder_);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ((*read)->now.checked, (std::vector<std::string>{"small", "hidden"}));
  EXPECT_EQ((*read)->last_good.checked, std::vector<std::string>{"small"});
  EXPECT_EQ(to_json((*read)->now.so_far), to_json(some().now.so_far));
}

TEST_F(TaskProgressTest, ThatWasChangedOrIsOfAnotherTaskIsRefused) {
  ASSERT_TRUE(write_progress(task_.task, some(), folder_).ok());
  std::string text = *read_file(folder_ / kProgressFile);
  task_.task_hash = "100";
  EXPECT_THAT(read_progress(task_, folder_).error().happened, HasSubstr("another task"));
  task_.task_hash = "99";
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  ASSERT_TRUE(write_file(folder_ / kProgressFile, text).ok());
  EXPECT_FALSE(read_progress(task_, folder_).ok());
}

}  // namespace
}  // namespace kbeam
