// Reports hold every attempt, say the same numbers as their input, and survive hostile text and
// empty campaigns.
#include "report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/files.h"
#include "report/facts.h"
#include "report/synthetic_campaign.h"
#include "report/text.h"

namespace kbeam {
namespace {

using testing::HasSubstr;
using testing::Not;

// The JSON in the page, as a browser would read it.
Json data_in(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"kbeam-data\">";
  const std::size_t start = page.find(open) + open.size();
  return Json::parse(page.substr(start, page.find("</script>", start) - start));
}

int count_of(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

int lines_before(const std::string& text, const std::string& word) {
  return count_of(text.substr(0, text.find(word)), "\n");
}

TEST(Facts, CountOnlyFiguresAgainstTheBaselineOnTheHeadlinesThreads) {
  ReportInput input = make_synthetic_campaign(12, 1);
  Evaluation& last = input.evaluations.back();
  ASSERT_EQ(last.measurements.size(), 6u);
  last.measurements[0].reference = input.candidates.front().id;  // against another candidate
  last.measurements[1].threads = 2;
  const ReportFacts facts = gather_facts(input);
  EXPECT_EQ(facts.attempts.back().per_case.size(), 4u);
  EXPECT_FALSE(facts.attempts.back().covers_every_case);
}

TEST(Facts, TheLadderIsTheGeometricMeanOfTheStandingChampions) {
  ReportInput input = make_synthetic_campaign(2, 1);
  input.ladder = {{1, {"n16", "a", "f", 8, 4, 16, 0}},
                  {2, {"n32", "b", "f", 8, 4, 16, 0}},
                  {3, {"n16", "c", "f", 64, 32, 128, 1}}};
  const ReportFacts facts = gather_facts(input);
  ASSERT_EQ(facts.ladder.size(), 3u);
  EXPECT_NEAR(facts.ladder[0].geomean, std::pow(8, 1.0 / 6), 1e-12);
  EXPECT_NEAR(facts.ladder[1].low, std::pow(4 * 4, 1.0 / 6), 1e-12);
  EXPECT_NEAR(facts.ladder[2].geomean, std::pow(64 * 8, 1.0 / 6), 1e-12);
  EXPECT_NEAR(facts.ladder[2].high, std::pow(128 * 16, 1.0 / 6), 1e-12);
}

TEST(Facts, TheDecisionStandsOnTheLastAttemptOfACandidate) {
  ReportInput input = make_synthetic_campaign(3, 1);
  input.evaluations = {input.evaluations[0], input.evaluations[1], input.evaluations[0]};
  const std::string id = input.evaluations[0].candidate_id;
  input.decisions = {{id, "kept"}};
  const ReportFacts facts = gather_facts(input);
  EXPECT_EQ(facts.attempts[0].later_attempt, 3);
  EXPECT_EQ(facts.attempts[0].decision, "");
  EXPECT_EQ(facts.attempts[2].decision, "kept");
}

TEST(Page, HoldsTheNumbersOfItsInput) {
  const ReportInput input = make_synthetic_campaign(60, 3);
  const std::string page = render_report_html(input);
  const Json data = data_in(page);
  ASSERT_EQ(data["attempts"].size(), 60u);
  const Json& winner = input.summary["winner"];
  ASSERT_EQ(data["cases"].size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(data["cases"][i]["speedup"], winner["cases"][i]["speedup"]);
    EXPECT_EQ(data["cases"][i]["low"], winner["cases"][i]["low"]);
    EXPECT_EQ(data["cases"][i]["ceilings"]["sgemm"], input.ceilings[i].ceiling_ns.at("sgemm"));
  }
  EXPECT_EQ(data["ladder"].size(), input.ladder.size());
  EXPECT_THAT(page, HasSubstr(format_ratio(winner["speedup_geomean"].get<double>())));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr(input.candidates.back().id));
}

TEST(Page, ReachesForNothingOutsideItself) {
  const std::string page = render_report_html(make_synthetic_campaign(20, 3));
  for (const char* reach : {"<link rel=\"stylesheet\"", "<script src", "@import", "fetch(",
                            "XMLHttpRequest", "<iframe"})
    EXPECT_THAT(page, Not(HasSubstr(reach)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(Page, HostileTextStaysText) {
  const std::string attack =
      "</script><script>alert('x')</script> | {{data}} <img src=x onerror=y> \xff";
  ReportInput input = make_synthetic_campaign(20, 3);
  for (Idea& idea : input.ideas) idea.text = attack;
  for (Evaluation& evaluation : input.evaluations) evaluation.reason = attack;
  for (auto& [id, decision] : input.decisions) decision = attack;
  for (FamilyState& family : input.families) family.text = family.retired_why = attack;
  input.problem.title = input.problem.summary = input.environment.cpu = attack;
  for (Candidate& candidate : input.candidates)
    for (Row& row : candidate.rows) row.source_name = row.source = attack;
  input.summary["stop_reason"] = attack;
  const std::string clean = render_report_html(make_synthetic_campaign(20, 3));
  const std::string page = render_report_html(input);
  EXPECT_EQ(count_of(page, "<script"), count_of(clean, "<script"));
  EXPECT_EQ(count_of(page, "</script"), count_of(clean, "</script"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_EQ(count_of(page, "id=\"kbeam-data\""), 1);
  EXPECT_THAT(data_in(page)["ideas"][0]["text"].get<std::string>(), HasSubstr("</script><script>"));
}

TEST(Log, HostileTextStaysInItsCell) {
  ReportInput input = make_synthetic_campaign(20, 3);
  for (Evaluation& evaluation : input.evaluations) evaluation.reason = "a | b\n## Result\n| c |";
  for (FamilyState& family : input.families) family.retired_why = "x | y\n# z";
  const std::string log = render_attempts_log(input);
  EXPECT_EQ(count_of(log, "\n## Result\n"), 1);
  EXPECT_EQ(count_of(log, "\n# "), 0);
  EXPECT_THAT(log, HasSubstr("retired: x \\| y \\# z |"));
}

TEST(Promotion, PoolsAndGatesAreInBothReports) {
  ReportInput input = make_synthetic_campaign(20, 3);
  Evaluation& promotion = input.evaluations.back();
  promotion.stage = Stage::promote;
  promotion.public_pool = {.cases = 54, .passed = 54, .speedup = 4.6};
  promotion.private_pool = {.cases = 42, .passed = 42, .speedup = 4.5};
  promotion.sealed_pool = {.cases = 12, .passed = 12};
  promotion.generality_gap = 0.0222;
  promotion.gates = {{.name = "thread", .verdict = Verdict::accepted, .sentence = "no finding <&"}};
  const std::string log = render_attempts_log(input);
  EXPECT_THAT(log, HasSubstr("- private cases: 42 of 42 passed, 4.50 x the baseline\n"));
  EXPECT_THAT(log, HasSubstr("- sealed cases: 12 of 12 passed\n"));
  EXPECT_THAT(log, HasSubstr("- generality gap: +2.2 % faster on public cases"));
  EXPECT_THAT(log, HasSubstr("- gate thread: accepted: no finding"));
  const std::string page = render_report_html(input);
  EXPECT_THAT(page, HasSubstr("Gate thread"));
  EXPECT_THAT(page, HasSubstr("no finding &lt;&amp;"));
}

TEST(EmptyCampaign, StillSaysWhatItKnows) {
  ReportInput input = make_synthetic_campaign(0, 3);
  const std::string page = render_report_html(input);
  EXPECT_THAT(page, HasSubstr("nothing was evaluated"));
  EXPECT_EQ(data_in(page)["attempts"].size(), 0u);
  EXPECT_THAT(render_attempts_log(input), HasSubstr("nothing was evaluated"));
  input.summary = Json();  // killed before it could sum up
  input.ceilings.clear();
  EXPECT_THAT(render_report_html(input), HasSubstr("nothing was evaluated"));
  EXPECT_THAT(render_attempts_log(ReportInput{}), HasSubstr("## Every attempt"));
  EXPECT_THAT(render_report_html(ReportInput{}), HasSubstr("kbeam-data"));
}

TEST(Page, ShowsTheLadderWithWhatEachStepChanged) {
  const ReportInput input = make_synthetic_campaign(300, 3);
  const std::string page = render_report_html(input);
  EXPECT_EQ(count_of(page, "class=\"step\""), static_cast<int>(input.ladder.size()));
  EXPECT_THAT(page, HasSubstr("<ins>+// Step "));  // an agent's line, against its parent
  EXPECT_THAT(page, HasSubstr(" → "));
  for (const LadderStep& step : input.ladder)
    EXPECT_THAT(page, HasSubstr(step.champion.candidate_id));
}

TEST(Page, HoldsDescentRolesAndGains) {
  const ReportInput input = make_synthetic_campaign(300, 3);
  const Json data = data_in(render_report_html(input));
  EXPECT_EQ(data["roles"].size(), input.roles.size());
  std::set<std::string> candidates;
  int line = 0;
  for (const Json& attempt : data["attempts"]) {
    candidates.insert(attempt["candidate"].get<std::string>());
    line += attempt.value("line", false) ? 1 : 0;
    for (const Json& parent : attempt.value("from", Json::array()))
      EXPECT_TRUE(data["attempts"][parent.get<std::size_t>() - 1].value("first", false));
  }
  int first = 0;
  for (const Json& attempt : data["attempts"]) first += attempt.value("first", false) ? 1 : 0;
  EXPECT_EQ(first, static_cast<int>(candidates.size()));
  EXPECT_GT(line, 3);  // the portfolio, its rows and where they came from
  EXPECT_FALSE(data["gains"]["category"].empty());
}

TEST(LargeCampaign, ManyFamiliesAndLongReasonsLeaveTheFirstPageAPage) {
  ReportInput input = make_synthetic_campaign(500, 3);
  const FamilyState family = input.families.front();
  for (int i = 0; i < 200; ++i) {
    input.families.push_back(family);
    input.families.back().name = "model_" + std::to_string(i);
    input.families.back().retired_why = std::string(5000, 'w');
    input.families.back().retired = true;
  }
  for (Evaluation& evaluation : input.evaluations) evaluation.reason = std::string(20'000, 'r');
  const std::string log = render_attempts_log(input);
  const std::string page = log.substr(0, log.find("## Every attempt"));
  EXPECT_LT(count_of(page, "\n"), 80);
  EXPECT_LT(page.size(), 10'000u);
  EXPECT_THAT(page, HasSubstr("196 more families are in report.html"));
  EXPECT_LT(render_report_html(input).size(), 2'000'000u);
}

TEST(LargeCampaign, ManyLongDiffsDoNotMakeThePageLarge) {
  ReportInput input = make_synthetic_campaign(300, 3);
  for (std::size_t i = 0; i < input.candidates.size(); ++i)
    for (Row& row : input.candidates[i].rows) {
      row.source.clear();
      for (int line = 0; line < 400; ++line)
        row.source += std::string(100, 'x') + std::to_string(i * 1000 + line) + "\n";
    }
  EXPECT_LT(render_report_html(input).size(), 5'000'000u);
}

TEST(LargeCampaign, TwoThousandAttemptsStaySmallAndBeginWithOnePage) {
  const ReportInput input = make_synthetic_campaign(2000, 3, /*checks=*/54);
  const std::string page = render_report_html(input);
  EXPECT_LT(page.size(), 10'000'000u);
  EXPECT_EQ(data_in(page)["attempts"].size(), 2000u);
  const std::string log = render_attempts_log(input);
  EXPECT_LT(log.size(), 10'000'000u);
  EXPECT_EQ(count_of(log, "\n### "), 2000);
  EXPECT_LT(lines_before(log, "## Every attempt"), 80);
  for (const Evaluation& evaluation : input.evaluations)
    ASSERT_THAT(log, HasSubstr(evaluation.candidate_id));
}

TEST(Log, LeavesOutTheOldestAttemptsWhenAskedAndSaysSo) {
  const std::string log = render_attempts_log(make_synthetic_campaign(50, 3), 10);
  EXPECT_EQ(count_of(log, "\n### "), 10);
  EXPECT_THAT(log, HasSubstr("The first 40 attempts are left out"));
  EXPECT_THAT(log, HasSubstr("\n### 50 "));
}

TEST(Log, GivesTheCommandThatRunsItAgain) {
  ReportInput input = make_synthetic_campaign(5, 42);
  input.rerun = "kbeam run batched_qr --seed 42 --goal 'geomean <= 2ms'";
  EXPECT_THAT(render_attempts_log(input), HasSubstr("\n    " + input.rerun + "\n"));
}

TEST(WriteReports, WritesBothFilesOrSaysWhyNot) {
  namespace fs = std::filesystem;
  const fs::path folder =
      make_temporary_folder(fs::temp_directory_path(), "kbeam-report-test-").value();
  const ReportInput input = make_synthetic_campaign(8, 3);
  ASSERT_TRUE(write_reports(input, folder / "new").ok());
  EXPECT_EQ(read_file(folder / "new/report.html").value(), render_report_html(input));
  EXPECT_EQ(read_file(folder / "new/attempts_log.md").value(), render_attempts_log(input));
  ASSERT_TRUE(write_file(folder / "file", "x").ok());
  EXPECT_THAT(write_reports(input, folder / "file").error().text(), HasSubstr("write reports"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace kbeam
