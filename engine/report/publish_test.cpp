// A published run holds the evidence for its winner, stays small, and is whole or absent.
#include "report/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "model/json_forms.h"
#include "report/synthetic_campaign.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PublishTest : public testing::Test {
 protected:
  void SetUp() override {
    campaigns_ = make_temporary_folder(fs::temp_directory_path(), "kbeam-publish-test-").value();
  }
  void TearDown() override { fs::remove_all(campaigns_); }

  fs::path folder_of(const ReportInput& input) const { return campaigns_ / input.config.run_id; }
  static Json json_of(const fs::path& file) { return Json::parse(read_file(file).value()); }

  static std::uintmax_t bytes_below(const fs::path& folder) {
    std::uintmax_t total = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) total += entry.file_size();
    return total;
  }

  fs::path campaigns_;
};

TEST_F(PublishTest, HoldsTheWinnerItsSamplesAndTheReports) {
  const ReportInput input = make_synthetic_campaign(60, 3);
  const Result<void> published = publish_run(input, campaigns_);
  ASSERT_TRUE(published.ok()) << published.error().text();
  const fs::path folder = folder_of(input);
  EXPECT_EQ(json_of(folder / "summary.json"), input.summary);
  CampaignConfig without_folder = input.config;  // where it lay says nothing on another machine
  without_folder.problem_folder = input.config.problem_name;
  EXPECT_EQ(to_json(campaign_config_from_json(json_of(folder / "campaign.json")["config"]).value()),
            to_json(without_folder));
  EXPECT_TRUE(fs::exists(folder / "report.html"));
  EXPECT_TRUE(fs::exists(folder / "attempts_log.md"));

  // The winner can be put together again, with the same id.
  Json form = json_of(folder / "winner/candidate.json");
  for (Json& row : form["rows"])
    row["source"] = read_file(folder / "winner" / row["source"].get<std::string>()).value();
  const Candidate winner = candidate_from_json(form).value();
  EXPECT_EQ(candidate_id(winner), input.summary["winner"]["candidate_id"]);

  std::istringstream lines(read_file(folder / "samples.jsonl").value());
  std::string line;
  std::set<std::string> cases;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line);
    cases.insert(json["case_name"]);
    EXPECT_EQ(measurement_from_json(json).value().samples.candidate_ns.size(), 27u);
  }
  EXPECT_EQ(cases.size(), 6u);
}

TEST_F(PublishTest, NeverReplacesWhatWasPublished) {
  const ReportInput input = make_synthetic_campaign(10, 3);
  ASSERT_TRUE(publish_run(input, campaigns_).ok());
  const std::string before = read_file(folder_of(input) / "summary.json").value();
  ReportInput changed = input;
  changed.summary["evaluations"] = 999;
  EXPECT_THAT(publish_run(changed, campaigns_).error().text(), HasSubstr("already there"));
  EXPECT_EQ(read_file(folder_of(input) / "summary.json").value(), before);
}

TEST_F(PublishTest, TwoThousandAttemptsFitInTwoMegabytes) {
  const ReportInput input = make_synthetic_campaign(2000, 3);
  ASSERT_TRUE(publish_run(input, campaigns_).ok());
  EXPECT_LT(bytes_below(folder_of(input)), 2'000'000u);
}

TEST_F(PublishTest, AShortLogMakesRoomAndSaysSo) {
  const ReportInput input = make_synthetic_campaign(200, 3);
  ASSERT_TRUE(publish_run(input, campaigns_, 200'000).ok());
  EXPECT_LT(bytes_below(folder_of(input)), 200'000u);
  EXPECT_THAT(read_file(folder_of(input) / "attempts_log.md").value(),
              HasSubstr("are left out here"));
}

TEST_F(PublishTest, NamesFromProposersStayInsideTheFolder) {
  ReportInput input = make_synthetic_campaign(30, 3);
  for (Row& row : input.candidates.back().rows) row.source_name = "../../../escape/../x.cpp";
  ASSERT_TRUE(publish_run(input, campaigns_).ok());
  for (const auto& entry : fs::recursive_directory_iterator(campaigns_))
    EXPECT_THAT(entry.path().string(), HasSubstr(folder_of(input).string()));
  std::set<std::string> sources;
  for (const Row& row : input.candidates.back().rows) sources.insert(row.source);
  const auto files = std::distance(fs::directory_iterator(folder_of(input) / "winner"), {});
  EXPECT_EQ(static_cast<std::size_t>(files),
            sources.size() + 1);  // one name each, and candidate.json
}

TEST_F(PublishTest, AFolderThatCannotBeWrittenLeavesNothing) {
  ASSERT_TRUE(write_file(campaigns_ / "file", "x").ok());
  EXPECT_FALSE(publish_run(make_synthetic_campaign(5, 3), campaigns_ / "file").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(campaigns_), {}), 1);
}

}  // namespace
}  // namespace kbeam
