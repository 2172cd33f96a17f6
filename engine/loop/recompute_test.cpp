// A campaign recorded as the loop records it has no mistakes; with any one record changed it has.
#include "loop/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "measure/statistics.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kDelta = 0.005;

Candidate make_candidate(const std::string& knob) {
  Candidate candidate{.idea_id = "i", .family = "f", .parent = "", .origin = "builtin", .rows = {}};
  candidate.rows = {{.source = "// source\n", .source_name = "f.cpp", .knobs = {{"kPanel", knob}}}};
  candidate.id = candidate_id(candidate);
  return candidate;
}

Measurement measure(double speedup, int pairs, double reference_speedup) {
  Measurement measurement{.case_name = "n64", .reference = "lapack"};
  measurement.reference_speedup = reference_speedup;
  for (int pair = 0; pair < pairs; ++pair) {
    measurement.samples.candidate_ns.push_back(1e6 + pair);
    measurement.samples.reference_ns.push_back(1e6 * speedup + pair);
    measurement.samples.candidate_first.push_back(pair % 2 == 0);
    measurement.samples.process.push_back(0);
  }
  measurement.noise_floor = kDelta;
  measurement.summary = summarise_pairs(measurement.samples, 0.99, kDelta);
  return measurement;
}

// What the loop would write of one candidate that is screened, confirmed and promoted; a test
// changes one field before it is written.
struct Record {
  Candidate candidate = make_candidate("32");
  Evaluation screen, confirm, promote;
  Json observation, champion, promotion;
  std::string decision = "winner";
  std::optional<Json> refusal;  // in the champion's stead

  Record() {
    const auto evaluate = [&](const char* id, Stage stage, double speedup, int pairs) {
      Evaluation evaluation{.id = id, .candidate_id = candidate.id, .stage = stage};
      evaluation.verdict = Verdict::accepted;
      evaluation.measurements = {measure(speedup, pairs, stage == Stage::promote ? NAN : 1)};
      return evaluation;
    };
    screen = evaluate("e1", Stage::screen, 2, 5);
    confirm = evaluate("e2", Stage::confirm, 1.9, 30);
    promote = evaluate("e3", Stage::promote, 1.8, 30);
    observation = {{"candidate_id", candidate.id},
                   {"verdict", "accepted"},
                   {"speedup", {{"n64", ranking_speedup(screen.measurements[0].samples)}}},
                   {"used_s", 1.0},
                   {"busy_s", 1.0}};
    const PairedSummary& confirmed = confirm.measurements[0].summary;
    champion = to_json(Champion{.case_name = "n64",
                                .candidate_id = candidate.id,
                                .family = "f",
                                .speedup = confirmed.speedup,
                                .low = confirmed.low,
                                .high = confirmed.high,
                                .version = 1});
    promotion = {{"candidate_id", candidate.id}, {"evaluation_id", "e3"}, {"all_cores_id", ""},
                 {"engine_failed", false},       {"confidence", 0.99},    {"case_confidence", 0.99},
                 {"slower_allowed", 0},          {"failed_at", nullptr}};
  }
};

class RecomputeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_folder(testing::TempDir(), "kbeam-recompute-test-").value();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Recomputed recompute(const Record& record, Search* search = nullptr) {
    auto archive = Archive::create(folder_ / "archive.sqlite", {}, {});
    EXPECT_TRUE(archive.ok()) << archive.error().text();
    Archive& log = **archive;
    EXPECT_TRUE(log.append_candidate(record.candidate).ok());
    EXPECT_TRUE(log.append_evaluation(record.screen).ok());
    EXPECT_TRUE(log.append_event("observation", record.observation).ok());
    EXPECT_TRUE(log.append_evaluation(record.confirm).ok());
    if (record.refusal)
      EXPECT_TRUE(log.append_event("refusal", *record.refusal).ok());
    else
      EXPECT_TRUE(log.append_event("champion", record.champion).ok());
    EXPECT_TRUE(log.append_evaluation(record.promote).ok());
    EXPECT_TRUE(log.append_decision({record.decision, record.candidate.id, "why"}).ok());
    EXPECT_TRUE(log.append_event("promotion", record.promotion).ok());
    auto recomputed = recompute_decisions(log, search);
    EXPECT_TRUE(recomputed.ok()) << recomputed.error().text();
    return *recomputed;
  }

  std::filesystem::path folder_;
};

TEST_F(RecomputeTest, ARecordedCampaignFollowsFromItsSamples) {
  const Recomputed again = recompute(Record());
  EXPECT_THAT(again.mistakes, IsEmpty());
  EXPECT_EQ(again.summaries, 3);
  EXPECT_EQ(again.decisions, 3);
  EXPECT_EQ(again.choices, 0);
}

TEST_F(RecomputeTest, ASummaryThatTheSamplesDoNotSay) {
  Record record;
  record.promote.measurements[0].summary.low *= 1.01;
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("evaluation e3, case n64")));
}

TEST_F(RecomputeTest, ASampleThatWasChanged) {
  Record record;
  record.confirm.measurements[0].samples.candidate_ns[7] *= 4;
  record.confirm.measurements[0].samples.candidate_ns[8] *= 4;
  EXPECT_THAT(recompute(record).mistakes, testing::Not(IsEmpty()));
}

TEST_F(RecomputeTest, AnObservationThatItsEvaluationDoesNotSay) {
  Record record;
  record.observation["speedup"]["n64"] = 3.0;
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("observed with 3 x on n64")));
}

TEST_F(RecomputeTest, AVerdictThatItsEvaluationDoesNotSay) {
  Record record;
  record.observation["verdict"] = "wrong_value";
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("observed as wrong_value")));
}

TEST_F(RecomputeTest, AChampionThatWasNotConfirmed) {
  Record record;
  record.confirm.measurements = {measure(1.0, 30, 1)};
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("which no confirmation says")));
}

TEST_F(RecomputeTest, AContenderWhoseFiguresItsConfirmationDoesNotSay) {
  Record record;
  record.confirm.measurements = {measure(1.0, 30, 1)};
  const PairedSummary& confirmed = record.confirm.measurements[0].summary;
  record.refusal = {
      {"case_name", "n64"},    {"candidate_id", record.candidate.id}, {"why", "same"},
      {"against", "c0"},       {"speedup", confirmed.speedup},        {"low", confirmed.low},
      {"high", confirmed.high}};
  EXPECT_THAT(recompute(record).mistakes, IsEmpty());
  std::filesystem::remove(folder_ / "archive.sqlite");
  (*record.refusal)["low"] = 1.3;
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("contends for n64")));
}

TEST_F(RecomputeTest, AReferenceThatWasNotTheChampion) {
  Record record;
  record.confirm.measurements[0].reference_speedup = 2;
  EXPECT_THAT(recompute(record).mistakes,
              testing::Contains(HasSubstr("the champion of then as 1 x")));
}

TEST_F(RecomputeTest, AWinnerThatItsPromotionDoesNotName) {
  Record record;
  record.promote.measurements = {measure(1.001, 30, NAN)};
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("is recorded as winner")));
}

TEST_F(RecomputeTest, AWinnerThatWasDenied) {
  Record record;
  record.decision = "not promoted";
  EXPECT_THAT(recompute(record).mistakes, ElementsAre(HasSubstr("is recorded as not promoted")));
}

std::unique_ptr<Search> make_search_of(const Record& record) {
  Sketch sketch;
  sketch.idea = {.id = "i", .family = "f"};
  sketch.source = record.candidate.rows[0].source;
  sketch.source_name = "f.cpp";
  sketch.knobs = {{"kPanel", "int", "32", {"16", "32", "64"}}};
  SearchConfig config;
  config.in_flight = 2;
  config.cases = {"n64"};
  return Search::make(config, {sketch});
}

TEST_F(RecomputeTest, TheSearchChoosesAgainWhatWasEvaluated) {
  const Record record;
  const auto search = make_search_of(record);
  const Recomputed again = recompute(record, search.get());
  EXPECT_THAT(again.mistakes, IsEmpty());
  EXPECT_EQ(again.choices, 1);
}

TEST_F(RecomputeTest, ACandidateThatTheSearchHadNotChosen) {
  Record record;
  const auto search = make_search_of(record);
  const auto first = search->ask();  // now its next choice is another
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(recompute(record, search.get()).mistakes,
              ElementsAre(HasSubstr("where the search had chosen")));
}

}  // namespace
}  // namespace kbeam
