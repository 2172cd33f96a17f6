// The small functions of the nouns: row choice, ids, shapes, and the rule that a failure has no
// speed.
#include <gtest/gtest.h>

#include <set>

#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {
namespace {

Candidate two_rows() {
  Candidate candidate;
  candidate.rows = {Row{"small", "small.cpp", {{"kPanel", "8"}}, 0, 22},
                    Row{"large", "large.cpp", {}, 24, 1000}};
  return candidate;
}

TEST(Candidate, PicksTheRowWhoseRangeHoldsTheValue) {
  const Candidate candidate = two_rows();
  EXPECT_EQ(candidate.row_for(0).source, "small");
  EXPECT_EQ(candidate.row_for(22).source, "small");
  EXPECT_EQ(candidate.row_for(24).source, "large");
  EXPECT_EQ(candidate.row_index_for(1000), 1u);
}

TEST(Candidate, GivesAnUncoveredValueToTheNearestRowAndTheFirstOfEquals) {
  const Candidate candidate = two_rows();
  EXPECT_EQ(candidate.row_index_for(5000), 1u);
  EXPECT_EQ(candidate.row_index_for(23), 0u);
  EXPECT_EQ(candidate.row_index_for(INT64_MAX), 1u);
  EXPECT_EQ(candidate.row_index_for(INT64_MIN), 0u);
}

TEST(Candidate, AsksTheOwnRowThenThoseOfLargerValuesThenTheOthers) {
  Candidate candidate;
  for (const std::int64_t least : {0, 10, 20, 30}) {
    Row row;
    row.axis_least = least;
    row.axis_most = least + 9;
    candidate.rows.push_back(row);
  }
  EXPECT_EQ(candidate.rows_to_ask(15), (std::vector<std::size_t>{1, 2, 3, 0}));
  EXPECT_EQ(candidate.rows_to_ask(0), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(candidate.rows_to_ask(1000), (std::vector<std::size_t>{3, 2, 1, 0}));
}

TEST(CandidateId, ChangesWithEverythingThatDecidesBehaviour) {
  std::set<std::string> ids;
  Candidate candidate = two_rows();
  ids.insert(candidate_id(candidate));
  candidate.rows[0].source += " ";
  ids.insert(candidate_id(candidate));
  candidate.rows[0].knobs["kPanel"] = "16";
  ids.insert(candidate_id(candidate));
  candidate.rows[0].axis_most = 21;
  ids.insert(candidate_id(candidate));
  candidate.rows[0].axis_least = 1;
  ids.insert(candidate_id(candidate));
  std::swap(candidate.rows[0], candidate.rows[1]);
  ids.insert(candidate_id(candidate));
  candidate.rows.pop_back();
  ids.insert(candidate_id(candidate));
  EXPECT_EQ(ids.size(), 7u);
  for (const std::string& id : ids) EXPECT_EQ(id.size(), 12u);
}

TEST(CandidateId, IgnoresNamesAndOrigin) {
  Candidate candidate = two_rows();
  const std::string id = candidate_id(candidate);
  candidate.family = "other";
  candidate.origin = "manual";
  candidate.rows[0].source_name = "renamed.cpp";
  EXPECT_EQ(candidate_id(candidate), id);
}

TEST(CandidateId, DoesNotConfuseTextWithKnobs) {
  Candidate left;
  left.rows = {Row{.source = "ab", .source_name = "", .knobs = {{"c", "d"}}}};
  Candidate right;
  right.rows = {Row{.source = "a", .source_name = "", .knobs = {{"bc", "d"}}}};
  EXPECT_NE(candidate_id(left), candidate_id(right));
}

TEST(DescribeKnobs, ListsNamesInOrder) {
  EXPECT_EQ(describe_knobs({{"kWidth", "16"}, {"kPanel", "32"}}), "kPanel=32 kWidth=16");
  EXPECT_EQ(describe_knobs({}), "");
}

Problem qr_problem() {
  Problem problem;
  problem.tensors = {
      {"A", KBEAM_INPUT, KBEAM_F32, {"batch", "m", "n"}, {"batch", "n", "m"}},
      {"tau", KBEAM_OUTPUT, KBEAM_F64, {"batch", "k"}, {"batch", "k"}},
      {"info", KBEAM_OUTPUT, KBEAM_I32, {"batch"}, {}},
  };
  Case n16{"n16", {{"batch", 3}, {"m", 5}, {"n", 4}, {"k", 4}}, "dense"};
  n16.timed = true;
  problem.cases = {n16, Case{"zero", {}, "zero"}};
  return problem;
}

TEST(Problem, FindsCasesByName) {
  const Problem problem = qr_problem();
  ASSERT_NE(problem.find_case("zero"), nullptr);
  EXPECT_EQ(problem.find_case("zero")->family, "zero");
  EXPECT_EQ(problem.find_case("none"), nullptr);
  ASSERT_EQ(problem.timed_cases().size(), 1u);
  EXPECT_EQ(problem.timed_cases()[0].name, "n16");
}

TEST(TensorShapes, StridesFollowMemoryOrder) {
  const Problem problem = qr_problem();
  const std::vector<TensorShape> shapes = tensor_shapes(problem, problem.cases[0].axes);
  ASSERT_EQ(shapes.size(), 3u);
  EXPECT_EQ(shapes[0].dims, (std::vector<std::int64_t>{3, 5, 4}));
  EXPECT_EQ(shapes[0].strides, (std::vector<std::int64_t>{20, 1, 5}));  // column-major
  EXPECT_EQ(shapes[0].elements(), 60);
  EXPECT_EQ(shapes[0].bytes(), 240);
  EXPECT_EQ(shapes[1].strides, (std::vector<std::int64_t>{4, 1}));
  EXPECT_EQ(shapes[1].bytes(), 96);
  EXPECT_EQ(shapes[2].strides, (std::vector<std::int64_t>{1}));  // no order given: as the shape
}

TEST(MakeEvaluation, AFailedCandidateHasNoSpeed) {
  for (const Verdict verdict : all_verdicts()) {
    Evaluation draft;
    draft.verdict = verdict;
    draft.measurements.resize(2);
    const std::size_t kept = make_evaluation(draft).measurements.size();
    EXPECT_EQ(kept, verdict == Verdict::accepted ? 2u : 0u) << to_string(verdict);
  }
}

TEST(Words, EveryEnumHasItsOwnWord) {
  EXPECT_EQ(to_string(SandboxLevel::landlock_seccomp), "landlock_seccomp");
  EXPECT_EQ(to_string(Stage::promote), "promote");
  EXPECT_EQ(to_string(Role::near_miss), "near_miss");
  EXPECT_EQ(to_string(StopReason::budget_wall), "budget_wall");
  std::set<std::string_view> words;
  for (const Verdict verdict : all_verdicts()) {
    words.insert(to_string(verdict));
    EXPECT_EQ(parse_verdict(to_string(verdict)), verdict);
  }
  EXPECT_EQ(words.size(), all_verdicts().size());
  EXPECT_EQ(parse_verdict("fine"), std::nullopt);
}

}  // namespace
}  // namespace kbeam
