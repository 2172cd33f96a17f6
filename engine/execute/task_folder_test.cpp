#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "execute/evaluation_task.h"
#include "execute/task_fixture.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TaskFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *make_temporary_folder(fs::temp_directory_path(), "task-");
    fs::create_directory(root_ / "parts");
    made_ = task_for_tests(root_ / "parts");
    folder_ = root_ / "task";
    ASSERT_TRUE(write_task_folder(made_.task, made_.files, folder_).ok());
  }
  void TearDown() override { fs::remove_all(root_); }

  LoadedTask load() {
    auto loaded = read_task_folder(folder_);
    EXPECT_TRUE(loaded.ok()) << loaded.error().text();
    return loaded.ok() ? std::move(*loaded) : LoadedTask();
  }
  // Every file of the folder, by name.
  std::vector<fs::path> every_file() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }
  static void overwrite(const fs::path& file, const std::string& content) {
    ASSERT_TRUE(write_file(file, content).ok());
  }

  fs::path root_;
  fs::path folder_;
  TaskForTests made_;
};

TEST_F(TaskFolderTest, IsReadBackWhole) {
  const LoadedTask loaded = load();
  EXPECT_EQ(to_json(loaded.task), to_json(made_.task));
  EXPECT_EQ(loaded.plans.size(), 5U);
  for (const auto& [hash, plan] : loaded.plans) EXPECT_EQ(launch_plan_hash(plan), hash);
  EXPECT_EQ(*read_file(loaded.images.at("ab12")), std::string("fat\0binary", 10));
  EXPECT_EQ(*read_file(loaded.problem_module), "host code");
  EXPECT_EQ(loaded.task_hash.size(), 64U);
}

TEST_F(TaskFolderTest, OneImageOfManyPlansIsStoredOnce) {
  std::size_t images = 0;
  for (const fs::path& file : every_file()) images += file.extension() == ".fatbin" ? 1 : 0;
  EXPECT_EQ(images, 1U);
  EXPECT_EQ(every_file().size(), 1U + 5U + 1U + 1U);  // task, plans, image, problem
}

TEST_F(TaskFolderTest, AChangedByteAnywhereIsRefusedByName) {
  for (const fs::path& file : every_file()) {
    const std::string genuine = *read_file(file);
    for (std::size_t i = 0; i < genuine.size(); i += 1 + genuine.size() / 23) {
      std::string changed = genuine;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      overwrite(file, changed);
      const auto loaded = read_task_folder(folder_);
      ASSERT_FALSE(loaded.ok()) << file << " byte " << i;
      EXPECT_THAT(loaded.error().text(), HasSubstr(file.filename().string()));
    }
    overwrite(file, genuine);
  }
  EXPECT_TRUE(read_task_folder(folder_).ok());
}

TEST_F(TaskFolderTest, ATruncatedOrMissingFileIsRefusedByName) {
  for (const fs::path& file : every_file()) {
    const std::string genuine = *read_file(file);
    overwrite(file, genuine.substr(0, genuine.size() - 1));
    const auto cut = read_task_folder(folder_);
    ASSERT_FALSE(cut.ok()) << file;
    EXPECT_THAT(cut.error().text(), HasSubstr(file.filename().string()));
    fs::remove(file);
    const auto missing = read_task_folder(folder_);
    ASSERT_FALSE(missing.ok()) << file;
    EXPECT_THAT(missing.error().text(), HasSubstr(file.filename().string()));
    overwrite(file, genuine);
  }
}

TEST_F(TaskFolderTest, IsWrittenCompletelyOrNotAtAll) {
  TaskFiles lacking = made_.files;
  lacking.images["ab12"] = root_ / "nowhere";
  EXPECT_FALSE(write_task_folder(made_.task, lacking, root_ / "second").ok());
  EXPECT_FALSE(fs::exists(root_ / "second"));
  for (const auto& entry : fs::directory_iterator(root_))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".part-")) << entry.path();
}

TEST_F(TaskFolderTest, NeverReplacesAFolder) {
  const auto written = write_task_folder(made_.task, made_.files, folder_);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().happened, HasSubstr("there already"));
  EXPECT_TRUE(read_task_folder(folder_).ok());
}

TEST_F(TaskFolderTest, RefusesATaskWithoutAllItsPlansAndImages) {
  TaskFiles lacking = made_.files;
  lacking.images.clear();
  EXPECT_THAT(write_task_folder(made_.task, lacking, root_ / "second").error().happened,
              HasSubstr("image ab12 of plan"));
  lacking = made_.files;
  lacking.plans.erase(made_.task.cases[2].full_check_plan);
  EXPECT_THAT(write_task_folder(made_.task, lacking, root_ / "second").error().happened,
              HasSubstr("plan " + made_.task.cases[2].full_check_plan + " is missing"));
}

TEST_F(TaskFolderTest, AResultIsReadBack) {
  const LoadedTask loaded = load();
  const TaskResult result = result_for_tests(loaded);
  ASSERT_TRUE(write_result(loaded.task, result, folder_).ok());
  const auto back = read_result(loaded, folder_);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(*back), to_json(result));
}

TEST_F(TaskFolderTest, AChangedResultIsRefused) {
  const LoadedTask loaded = load();
  ASSERT_TRUE(write_result(loaded.task, result_for_tests(loaded), folder_).ok());
  const std::string genuine = *read_file(folder_ / kResultFile);
  // The lie that pays: another time in the samples.
  std::string changed = genuine;
  const std::size_t at = changed.find("1001.0");
  ASSERT_NE(at, std::string::npos);
  changed.replace(at, 6, "0501.0");
  overwrite(folder_ / kResultFile, changed);
  EXPECT_THAT(read_result(loaded, folder_).error().happened, HasSubstr("changed"));
  for (std::size_t i = 0; i < genuine.size(); i += 1 + genuine.size() / 101) {
    changed = genuine;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    overwrite(folder_ / kResultFile, changed);
    EXPECT_FALSE(read_result(loaded, folder_).ok()) << i;
  }
}

TEST_F(TaskFolderTest, ATruncatedResultIsRefused) {
  const LoadedTask loaded = load();
  ASSERT_TRUE(write_result(loaded.task, result_for_tests(loaded), folder_).ok());
  const std::string genuine = *read_file(folder_ / kResultFile);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, genuine.size() / 2, genuine.size() - 1}) {
    overwrite(folder_ / kResultFile, genuine.substr(0, size));
    EXPECT_THAT(read_result(loaded, folder_).error().happened, HasSubstr("truncated")) << size;
  }
}

TEST_F(TaskFolderTest, AForeignResultIsRefused) {
  EvaluationTask other = made_.task;
  other.id = "task-2";
  other.seal_key = "another key";
  ASSERT_TRUE(write_task_folder(other, made_.files, root_ / "other").ok());
  const auto other_task = read_task_folder(root_ / "other");
  ASSERT_TRUE(other_task.ok());
  ASSERT_TRUE(write_result(other, result_for_tests(*other_task), root_ / "other").ok());
  fs::copy_file(root_ / "other" / kResultFile, folder_ / kResultFile);
  const auto refused = read_result(load(), folder_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().happened, HasSubstr("foreign: a result of task 'task-2'"));
}

TEST_F(TaskFolderTest, AResultOfATaskThatWasChangedSinceIsRefused) {
  LoadedTask loaded = load();
  TaskResult result = result_for_tests(loaded);
  result.task_hash = std::string(64, '0');
  ASSERT_TRUE(write_result(loaded.task, result, folder_).ok());
  EXPECT_THAT(read_result(loaded, folder_).error().happened, HasSubstr("foreign"));
}

TEST_F(TaskFolderTest, AnUnsealedResultIsRefused) {
  const LoadedTask loaded = load();
  overwrite(folder_ / kResultFile, R"({"format":"kbeam result 1","body":)" +
                                       json_text(to_json(result_for_tests(loaded))) + "}\n");
  EXPECT_THAT(read_result(loaded, folder_).error().happened, HasSubstr("unsealed"));
}

}  // namespace
}  // namespace kbeam
