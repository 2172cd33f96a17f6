// What leaves is complete, says what it rests on, and names nothing of this machine.
#include "report/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "report/export_code.h"
#include "report/synthetic_campaign.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
  return lines;
}

// The synthetic campaign with a problem that can be exported.
ReportInput exportable_campaign() {
  ReportInput run = make_synthetic_campaign(40, 3);
  run.problem.axes = {
      {"batch", 1, 1024, ""}, {"m", 1, 512, ""}, {"n", 1, 512, ""}, {"k", 1, 512, "min(m, n)"}};
  run.problem.tensors = {{"A", KBEAM_INPUT, KBEAM_F32, {"batch", "m", "n"}, {"batch", "n", "m"}},
                         {"tau", KBEAM_OUTPUT, KBEAM_F32, {"batch", "k"}, {}}};
  for (Case& one : run.problem.cases) one.axes = {{"batch", 4}, {"m", 16}, {"n", 16}, {"k", 16}};
  run.problem.folder = fs::path(KBEAM_SOURCE_DIR) / "problems/softmax";
  run.problem.code = run.problem.folder / "problem.cpp";
  return run;
}

class ExportTest : public testing::Test {
 protected:
  ~ExportTest() override { fs::remove_all(folder_); }

  Result<void> run_export(const ReportInput& run, const Candidate& candidate, ExportAs as) {
    return export_candidate({.run = run,
                             .candidate = candidate,
                             .as = as,
                             .contract_include = fs::path(KBEAM_SOURCE_DIR) / "contract/include"},
                            folder_ / "out");
  }
  std::string text(const std::string& name) { return read_file(folder_ / "out" / name).value(); }

  fs::path folder_ = make_temporary_folder(fs::temp_directory_path(), "kbeam-export-test-").value();
};

TEST(Dataset, HasEveryAttemptWithItsCodeVerdictAndTimes) {
  const ReportInput run = make_synthetic_campaign(60, 3);
  const std::vector<Json> lines = lines_of(render_dataset(run));
  ASSERT_EQ(lines.size(), 61u);
  EXPECT_EQ(lines[0]["kind"], "campaign");
  for (std::size_t i = 0; i < run.evaluations.size(); ++i) {
    const Evaluation& evaluation = run.evaluations[i];
    const Json& line = lines[i + 1];
    EXPECT_EQ(line["evaluation_id"], evaluation.id);
    EXPECT_EQ(line["verdict"], to_string(evaluation.verdict));
    EXPECT_EQ(line["times"].size(), evaluation.measurements.size());
    ASSERT_FALSE(line["code"].empty());
    EXPECT_THAT(line["code"][0]["source"].get<std::string>(), HasSubstr("kbeam/candidate.h"));
    EXPECT_EQ(line["idea"].is_null(), evaluation.stage == Stage::promote);
    if (!evaluation.measurements.empty()) {
      EXPECT_DOUBLE_EQ(line["times"][0]["speedup_over_baseline"].get<double>(),
                       evaluation.measurements[0].summary.speedup);
    }
  }
}

TEST(Dataset, EveryFieldIsDocumented) {
  const std::string page = read_file(fs::path(KBEAM_SOURCE_DIR) / "docs/export.md").value();
  for (const Json& line : lines_of(render_dataset(make_synthetic_campaign(12, 3))))
    for (const auto& [name, value] : line.items()) {
      EXPECT_THAT(page, HasSubstr("`" + name + "`"));
      if (name != "times" && name != "code" && name != "idea") continue;
      const Json& one = value.is_array() ? (value.empty() ? Json::object() : value[0]) : value;
      if (!one.is_object()) continue;
      for (const auto& [inner, ignored] : one.items())
        EXPECT_THAT(page, HasSubstr("`" + inner + "`"));
    }
}

TEST(Dataset, NamesNoFolderOfThisMachine) {
  ReportInput run = make_synthetic_campaign(12, 3);
  run.environment.compile_flags = {"-I", "/home/somebody/contract"};
  run.config.problem_folder = "/home/somebody/problem";
  EXPECT_THAT(render_dataset(run), Not(HasSubstr("somebody")));
}

TEST(Rows, ThatAgreeShareAnEntryAndOthersDoNot) {
  Candidate candidate;
  const Row row{.source = "a", .source_name = "x.cpp", .knobs = {{"k", "1"}}};
  candidate.rows = {row, row, row, row};
  candidate.rows[1].knobs["k"] = "2";
  candidate.rows[2].source = "b";
  const ExportedRows rows = name_rows("lib", candidate);
  ASSERT_EQ(rows.entries.size(), 3u);
  EXPECT_THAT(rows.entry_of_row, testing::ElementsAre(0, 1, 2, 0));
  EXPECT_EQ(rows.entries[1].file, "x.cpp");
  EXPECT_EQ(rows.entries[2].file, "2_x.cpp");
  EXPECT_EQ(rows.files.at("2_x.cpp"), "b");
}

TEST(Rows, KeepTheirNamesInsideTheFolder) {
  Candidate candidate;
  candidate.rows = {{.source = "a", .source_name = "../../evil $(x).cpp"}};
  EXPECT_EQ(name_rows("lib", candidate).entries[0].file, "candidate.cpp");
}

TEST_F(ExportTest, ALibraryHasInterfaceDispatchTestExampleAndProof) {
  const ReportInput run = exportable_campaign();
  const Candidate& winner = run.candidates.back();
  ASSERT_GT(winner.rows.size(), 1u);
  const Result<void> done = run_export(run, winner, ExportAs::library);
  ASSERT_TRUE(done.ok()) << done.error().text();
  const std::string library = text("src/batched_qr.cpp");
  for (const Row& row : winner.rows) {
    EXPECT_THAT(library, HasSubstr(std::to_string(row.axis_least) + ", "));
    EXPECT_EQ(text("src/kernels/" + row.source_name).empty(), false);
  }
  EXPECT_THAT(text("include/batched_qr.h"),
              HasSubstr("void batched_qr_run(batched_qr_plan* plan, const float* A, float* tau);"));
  EXPECT_THAT(library, HasSubstr("const std::int64_t k = min(m, n);"));
  EXPECT_THAT(library, HasSubstr("{batch, m, n}, {n * m, 1, m}"));
  EXPECT_THAT(text("CMakeLists.txt"), HasSubstr("KBEAM_SET_kPanel=~,"));
  EXPECT_THAT(text("README.md"), HasSubstr("Measured in a promotion"));
  EXPECT_THAT(text("README.md"), HasSubstr("`e40`"));
  EXPECT_EQ(Json::parse(text("proof.json")).size(), 6u);
  EXPECT_TRUE(fs::exists(folder_ / "out/test/problem/problem.cpp"));
  EXPECT_TRUE(fs::exists(folder_ / "out/contract/include/kbeam/cpu_plan.h"));
}

TEST_F(ExportTest, ACandidateThatWasOnlyScreenedSaysSo) {
  const ReportInput run = exportable_campaign();
  ASSERT_TRUE(run_export(run, run.candidates.front(), ExportAs::source).ok());
  EXPECT_THAT(text("README.md"), HasSubstr("**Not promoted**"));
  EXPECT_FALSE(fs::exists(folder_ / "out/include"));
  EXPECT_TRUE(fs::exists(folder_ / "out/src/kernels"));
}

TEST_F(ExportTest, ACudaCandidateLeavesAsSourceOnly) {
  const ReportInput run = exportable_campaign();
  Candidate candidate = run.candidates.front();
  candidate.rows[0].source_name = "blocked.cu";
  EXPECT_THAT(run_export(run, candidate, ExportAs::library).error().text(),
              HasSubstr("--as source"));
  ASSERT_TRUE(run_export(run, candidate, ExportAs::source).ok());
  EXPECT_TRUE(fs::exists(folder_ / "out/src/kernels/blocked.cu"));
  EXPECT_TRUE(fs::exists(folder_ / "out/contract/include/kbeam/launch_plan.h"));
  EXPECT_THAT(text("README.md"), HasSubstr("kbeam plan"));
}

TEST_F(ExportTest, RefusesAFolderThatIsThere) {
  const ReportInput run = exportable_campaign();
  ASSERT_TRUE(run_export(run, run.candidates.front(), ExportAs::source).ok());
  EXPECT_THAT(run_export(run, run.candidates.front(), ExportAs::source).error().text(),
              HasSubstr("already there"));
}

}  // namespace
}  // namespace kbeam
