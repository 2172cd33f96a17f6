#include "loop/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "loop/question.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Vocabulary kNames{.families = {"simd", "rows_in_registers", "rows"},
                        .cases = {"c64", "c512"},
                        .candidates = {"0123456789ab", "ffff00001111"},
                        .evaluations = {"e00001", "e00002"}};

TEST(Question, FindsNamesNumbersIdsAndTopics) {
  EXPECT_THAT(read_question("Why was family 2 dropped?", kNames).families,
              ElementsAre("rows_in_registers"));
  EXPECT_THAT(read_question("how is rows in registers on c512", kNames).families,
              ElementsAre("rows_in_registers"));  // and not "rows"
  EXPECT_THAT(read_question("how is Rows on c512", kNames).families, ElementsAre("rows"));
  EXPECT_THAT(read_question("how is rows on c512", kNames).cases, ElementsAre("c512"));
  EXPECT_THAT(read_question("what of 012345?", kNames).candidates, ElementsAre("0123456789ab"));
  EXPECT_THAT(read_question("e00002", kNames).evaluations, ElementsAre("e00002"));
  EXPECT_THAT(read_question("who gave a wrong value?", kNames).verdicts,
              ElementsAre("wrong_value"));
  EXPECT_THAT(read_question("who is winning?", kNames).about, ElementsAre(Topic::champions));
}

TEST(Question, SaysWhatIsNotThere) {
  EXPECT_EQ(read_question("why was family 9 dropped?", kNames).advice,
            "There is no family 9: this run has 3.");
  EXPECT_EQ(describe(read_question("why was family 9 dropped?", kNames)), "");
  EXPECT_EQ(describe(read_question("what is the meaning of life?", kNames)), "");
  EXPECT_EQ(read_question("what about smid?", kNames).advice, "Did you mean simd?");
}

AttemptRow attempt(const std::string& id, const std::string& candidate, const std::string& family,
                   Verdict verdict, double speedup) {
  AttemptRow row;
  row.candidate.id = row.evaluation.candidate_id = candidate;
  row.candidate.family = family;
  row.evaluation.id = id;
  row.evaluation.verdict = verdict;
  row.evaluation.reason = verdict == Verdict::accepted ? "" : "case c64: off by 3";
  if (verdict == Verdict::accepted)
    row.evaluation.measurements.push_back(
        {.case_name = "c64", .reference_speedup = 2, .summary = {.speedup = speedup / 2}});
  return row;
}

RunFacts facts() {
  RunFacts made;
  made.families = {"simd", "rows_in_registers"};
  made.cases = {"c64"};
  made.attempts = {attempt("e00001", "aaaaaa000001", "simd", Verdict::accepted, 3),
                   attempt("e00002", "bbbbbb000002", "rows_in_registers", Verdict::wrong_value, 0),
                   attempt("e00003", "cccccc000003", "simd", Verdict::accepted, 2.9)};
  made.decisions = {{"champion of c64", "aaaaaa000001", "e00001: 3.0x"},
                    {"retired family rows_in_registers", "rows_in_registers",
                     "none of 5 settings was accepted: 5 wrong_value"},
                    {"dropped family simd", "simd", "asked for by a tester"}};
  made.crownings = {{{.case_name = "c64",
                      .candidate_id = "aaaaaa000001",
                      .family = "simd",
                      .speedup = 3,
                      .low = 2.8,
                      .high = 3.2},
                     "e00001: 3.0x"}};
  made.refusals = {{"c64", "cccccc000003", "e00004: same"}};
  made.winner_text = "nothing was promoted yet";
  return made;
}

TEST(Answers, AFamilyIsAnsweredWithItsReasonAndEvaluations) {
  const Answer answer = answer_question(facts(), "why was family 2 dropped?");
  EXPECT_EQ(answer.read_as, "family rows_in_registers");
  const std::string text = to_text(answer);
  EXPECT_THAT(text, HasSubstr("none of 5 settings was accepted"));
  EXPECT_THAT(text, HasSubstr("retired"));
  EXPECT_THAT(text, HasSubstr("e00002"));
  EXPECT_THAT(text, Not(HasSubstr("e00001")));
  EXPECT_THAT(to_text(answer_question(facts(), "and simd?")),
              AllOf(HasSubstr("dropped"), HasSubstr("asked for by a tester"),
                    HasSubstr("3.00x on c64 in e00001")));
}

TEST(Answers, ChampionsRejectionsAndNearMisses) {
  EXPECT_THAT(
      to_text(answer_question(facts(), "who is the champion of c64?")),
      AllOf(HasSubstr("aaaaaa000001"), HasSubstr("3.00x [2.80, 3.20]"), HasSubstr("e00004: same")));
  EXPECT_THAT(to_text(answer_question(facts(), "which champions?")),
              AllOf(HasSubstr("e00001"), HasSubstr("nothing was promoted yet")));
  EXPECT_THAT(to_text(answer_question(facts(), "what was rejected")),
              AllOf(HasSubstr("e00002"), HasSubstr("off by 3"), Not(HasSubstr("e00001"))));
  EXPECT_THAT(to_text(answer_question(facts(), "what almost worked?")),
              AllOf(HasSubstr("97 % of 3.00x"), HasSubstr("e00003")));
  EXPECT_THAT(to_text(answer_question(facts(), "tell me of bbbbbb")),
              AllOf(HasSubstr("wrong_value"), Not(HasSubstr("e00003"))));
}

TEST(Answers, IsHonestWhenItCannotAnswer) {
  for (const char* question : {"will it rain?", "", "why was family 7 dropped?"}) {
    const Answer answer = answer_question(facts(), question);
    EXPECT_THAT(answer.read_as, IsEmpty()) << question;
    EXPECT_THAT(answer.tables, IsEmpty()) << question;
    EXPECT_THAT(answer.can_ask, Contains("who are the champions?"));
    EXPECT_THAT(to_text(answer), HasSubstr("cannot answer"));
  }
}

// What it offers to be asked it can answer.
TEST(Answers, EveryQuestionThatItOffersWorks) {
  for (const std::string& question : answer_question(facts(), "").can_ask)
    EXPECT_FALSE(answer_question(facts(), question).tables.empty()) << question;
}

TEST(Answers, FactsComeFromTheArchive) {
  const auto folder = make_temporary_folder("/tmp", "kbeam-answers-").value();
  {
    const auto archive = Archive::create(folder / "archive.sqlite", {.run_id = "r1"}, {}).value();
    ASSERT_TRUE(archive->append_idea({.id = "i1", .family = "simd"}).ok());
    const Champion champion{.case_name = "c64", .candidate_id = "abc", .family = "simd"};
    ASSERT_TRUE(archive->append_event("champion", to_json(champion)).ok());
    ASSERT_TRUE(archive->append_decision({"champion of c64", "abc", "e00007: 2x"}).ok());
    ASSERT_TRUE(archive
                    ->append_event("steering",
                                   to_json(SteeringMessage{
                                       .id = "m", .text = "try wider vectors", .who = "a tester"}))
                    .ok());
    const auto gathered = gather_facts(*archive);
    ASSERT_TRUE(gathered.ok());
    EXPECT_THAT(gathered->families, ElementsAre("simd"));
    ASSERT_EQ(gathered->crownings.size(), 1u);
    EXPECT_EQ(gathered->crownings.front().why, "e00007: 2x");
    EXPECT_THAT(to_text(answer_question(*gathered, "what was said to this run?")),
                AllOf(HasSubstr("try wider vectors"), HasSubstr("a tester")));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kbeam
