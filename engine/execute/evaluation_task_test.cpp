#include "execute/evaluation_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "execute/task_fixture.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class EvaluationTaskTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(std::filesystem::temp_directory_path(), "task-");
    made_ = task_for_tests(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
  TaskForTests made_;
};

TEST_F(EvaluationTaskTest, SurvivesJson) {
  made_.task.fixed_seed = 17;
  const Json json = to_json(made_.task);
  const auto back = evaluation_task_from_json(json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->secret_seed, made_.task.secret_seed);
  EXPECT_EQ(back->fixed_seed, 17U);
  EXPECT_EQ(back->kind, TaskKind::compare);
  EXPECT_EQ(back->reference->plan_of_case, made_.task.reference->plan_of_case);
  ASSERT_EQ(back->cases.size(), 3U);
  EXPECT_EQ(back->cases[1].the_case.pool, Pool::private_pool);
  EXPECT_EQ(back->cases[2].tensors[1].role, KBEAM_OUTPUT);
  EXPECT_EQ(back->cases[2].tensors[1].dims, std::vector<std::int64_t>{16});
  EXPECT_EQ(back->rule.text(), "promote: fixed 9 x 3");
  EXPECT_EQ(back->planner_sandbox, SandboxLevel::landlock_seccomp);
}

TEST_F(EvaluationTaskTest, WithoutReferenceAndSeedTheyAreNull) {
  made_.task.reference.reset();
  const Json json = to_json(made_.task);
  EXPECT_TRUE(json["reference"].is_null());
  const auto back = evaluation_task_from_json(json);
  ASSERT_TRUE(back.ok());
  EXPECT_FALSE(back->reference.has_value());
  EXPECT_FALSE(back->fixed_seed.has_value());
}

TEST_F(EvaluationTaskTest, EveryMissingFieldIsNamedByItsPath) {
  const Json json = to_json(made_.task);
  for (const auto& [name, value] : json.items()) {
    Json lacking = json;
    lacking.erase(name);
    const auto back = evaluation_task_from_json(lacking);
    if (name == "reference" || name == "fixed_seed") {  // what may be null may be absent
      EXPECT_TRUE(back.ok()) << name;
      continue;
    }
    ASSERT_FALSE(back.ok()) << name;
    EXPECT_THAT(back.error().happened, HasSubstr("'" + name + "' is missing"));
  }
  Json deep = json;
  deep["cases"][1]["tensors"][0]["type"] = "f16";
  EXPECT_THAT(evaluation_task_from_json(deep).error().happened,
              HasSubstr("'cases[1].tensors[0].type' should be one of the known words"));
}

TEST_F(EvaluationTaskTest, AResultSurvivesJson) {
  const LoadedTask loaded{.task = made_.task, .task_hash = "99"};
  const TaskResult result = result_for_tests(loaded);
  const Json json = to_json(result);
  const auto back = task_result_from_json(json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(back->device.weaknesses, result.device.weaknesses);
  EXPECT_EQ(back->evaluation.measurements.at(0).samples.candidate_ns.size(), 27U);
  EXPECT_EQ(back->conditions.at(0).power_w, 310.5);
  EXPECT_EQ(back->case_samples_ns.at("large").size(), 3U);
}

TEST_F(EvaluationTaskTest, AResultWithABadEvaluationSaysWhere) {
  const LoadedTask loaded{.task = made_.task, .task_hash = "99"};
  Json json = to_json(result_for_tests(loaded));
  json["evaluation"]["checks"][1]["verdict"] = "splendid";
  EXPECT_THAT(task_result_from_json(json).error().happened,
              HasSubstr("in field 'evaluation': field 'checks[1].verdict'"));
  json.erase("evaluation");
  EXPECT_THAT(task_result_from_json(json).error().happened, HasSubstr("'evaluation' is missing"));
}

TEST_F(EvaluationTaskTest, ASoundTaskHasNoMistakes) {
  EXPECT_THAT(find_task_mistakes(made_.task), IsEmpty());
}

TEST_F(EvaluationTaskTest, MistakesAreFoundTogether) {
  EvaluationTask& task = made_.task;
  task.id = "../x";
  task.seal_key.clear();
  task.cases.push_back(task.cases.front());
  task.check_cases.emplace_back("nowhere");
  task.timed_cases.emplace_back("large");
  task.rule.processes = 0;
  task.reference.reset();
  task.candidate.plan_of_case.erase("hidden");
  const std::string all = testing::PrintToString(find_task_mistakes(task));
  for (const char* part : {"field 'id'", "'seal_key' is empty", "'small' occurs twice",
                           "no case 'nowhere'", "'large' twice", "no pair or no process",
                           "'reference' is missing", "neither a plan for case 'hidden'"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST_F(EvaluationTaskTest, AnUnsupportedCaseNeedsAReason) {
  made_.task.candidate.plan_of_case.erase("hidden");
  EXPECT_EQ(find_task_mistakes(made_.task).size(), 1U);
  made_.task.candidate.not_supported["hidden"] = "only for n above 100";
  EXPECT_THAT(find_task_mistakes(made_.task), IsEmpty());
}

}  // namespace
}  // namespace kbeam
