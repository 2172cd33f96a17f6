// Every noun survives JSON unchanged, odd numbers and odd text included; damage is named.
#include "model/json_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace kbeam {
namespace {

using testing::HasSubstr;

Json through_text(const Json& json) {
  return Json::parse(json_text(json));
}

Idea make_idea() {
  return {"i1",  "blocked_wy", "algorithm", "quote \" and </script> and \xc3\xa9",
          "2 x", {"i0"},       "builtin"};
}

Candidate make_candidate() {
  Candidate candidate{"c1", "i1", "blocked_wy", "c0", "builtin/random", {}};
  candidate.rows = {Row{"int x;\n", "a.cpp", {{"kPanel", "32"}}, 0, 22},
                    Row{"int y;\n", "b.cpp", {}, 23, INT64_MAX}};
  return candidate;
}

Measurement make_measurement() {
  Measurement measurement;
  measurement.case_name = "n64";
  measurement.reference = "lapack";
  measurement.threads = 2;
  measurement.samples = {{1.5e6, 0.1}, {3e6, 1.0 / 3}, {1, 0}, {0, 1}};
  measurement.stopping_rule = "promote 9 x 3";
  measurement.stop_reason = "clear";
  measurement.noise_floor = 0.005;
  measurement.summary = {1.5e6,
                         3e6,
                         2.0,
                         -std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::infinity(),
                         0.99,
                         2,
                         Comparison::ambiguous};
  return measurement;
}

Evaluation make_full_evaluation() {
  Evaluation evaluation;
  evaluation.id = "e1";
  evaluation.candidate_id = "c1";
  evaluation.stage = Stage::promote;
  evaluation.verdict = Verdict::accepted;
  evaluation.grade = "fp32";
  evaluation.sandbox = SandboxLevel::namespaces;
  evaluation.weaknesses = {"no clflush"};
  CheckReport report{"n64", Verdict::accepted, "fp32", "", {}, 3, UINT64_MAX};
  report.figures = {{"column_residual", std::nan(""), 80, "eps", "matrix 3, column 7"}};
  evaluation.checks = {report};
  evaluation.measurements = {make_measurement()};
  evaluation.build_s = 0.25;
  evaluation.started_unix_ms = 1'700'000'000'123;
  evaluation.ended_unix_ms = 1'700'000'000'456;
  return evaluation;
}

TEST(JsonForms, IdeaAndCandidateAndArtifact) {
  const Json idea = to_json(make_idea());
  EXPECT_EQ(to_json(idea_from_json(through_text(idea)).value()), idea);
  EXPECT_EQ(idea["text"], make_idea().text);

  const Json candidate = to_json(make_candidate());
  const Candidate read = candidate_from_json(through_text(candidate)).value();
  EXPECT_EQ(to_json(read), candidate);
  EXPECT_EQ(read.rows[1].axis_most, INT64_MAX);
  EXPECT_EQ(read.rows[0].knobs.at("kPanel"), "32");

  const Json artifact = to_json(Artifact{Verdict::refused_object,
                                         "log",
                                         "why",
                                         "/cache/x.so",
                                         "key",
                                         "hash",
                                         1.25,
                                         true,
                                         {{"_Z5scalePf", {255, 49152, 16, 8, 512}}}});
  EXPECT_EQ(to_json(artifact_from_json(through_text(artifact)).value()), artifact);
  EXPECT_EQ(artifact["verdict"], "refused_object");
  EXPECT_EQ(artifact["kernels"]["_Z5scalePf"]["static_shared_bytes"], 49152);
  Json old = artifact;
  old.erase("kernels");
  EXPECT_EQ(artifact_from_json(old).value().log, "log");
}

TEST(JsonForms, EvaluationWithNumbersThatJsonLacks) {
  const Evaluation evaluation = make_full_evaluation();
  const Json json = to_json(evaluation);
  const Evaluation read = evaluation_from_json(through_text(json)).value();
  EXPECT_EQ(to_json(read), json);
  EXPECT_TRUE(std::isnan(read.checks[0].figures[0].value));
  EXPECT_FALSE(read.checks[0].figures[0].passed());
  EXPECT_EQ(read.checks[0].seed, UINT64_MAX);
  const Measurement& measurement = read.measurements.at(0);
  EXPECT_EQ(measurement.samples.candidate_ns, evaluation.measurements[0].samples.candidate_ns);
  EXPECT_EQ(measurement.samples.reference_ns[1], 1.0 / 3);  // bit for bit
  EXPECT_EQ(measurement.samples.candidate_first, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(measurement.summary.low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(measurement.summary.high, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(json["measurements"][0]["samples"]["candidate_ns"][0].is_number());
}

TEST(JsonForms, AFailedEvaluationIsReadWithoutSpeed) {
  Json json = to_json(make_full_evaluation());
  json["verdict"] = "wrong_value";
  EXPECT_TRUE(evaluation_from_json(json).value().measurements.empty());
}

TEST(JsonForms, CampaignNouns) {
  const Json environment = to_json(Environment{
      "EPYC", 2, {"avx2"}, "6.1", "g++ 12", {"-O3"}, "0.1.0", {{"openblas", "0.3.21 SkylakeX"}}});
  EXPECT_EQ(to_json(environment_from_json(through_text(environment)).value()), environment);

  CampaignConfig config;
  config.run_id = "r1";
  config.budget = {180, 40};
  config.seed = UINT64_MAX;
  config.candidate_cpus = {1};
  const Json config_json = to_json(config);
  EXPECT_EQ(to_json(campaign_config_from_json(through_text(config_json)).value()), config_json);

  FamilyState family;
  family.name = "recursive";
  family.role = Role::near_miss;
  family.best_per_case = {{"n16", 3.5}};
  family.retired = true;
  const Json family_json = to_json(family);
  EXPECT_EQ(to_json(family_from_json(through_text(family_json)).value()), family_json);

  const Json champion = to_json(Champion{"n16", "c1", "recursive", 3.5, 3.4, 3.6, 2});
  EXPECT_EQ(to_json(champion_from_json(through_text(champion)).value()), champion);
}

// What came later than the first archives may be missing in them.
const std::set<std::string> kLaterFields = {"public",   "private",     "sealed", "generality_gap",
                                            "held_out", "sealed_seed", "gates"};

TEST(JsonForms, EveryFieldOfEveryNounIsRequiredAndNamed) {
  const Json json = to_json(make_full_evaluation());
  for (const auto& [name, value] : json.items()) {
    if (kLaterFields.contains(name)) continue;
    Json without = json;
    without.erase(name);
    const Result<Evaluation> read = evaluation_from_json(without);
    ASSERT_FALSE(read.ok()) << name;
    EXPECT_THAT(read.error().text(), HasSubstr("'" + name + "' is missing"));
  }
  Json nested = json;
  nested["checks"][0]["figures"][0].erase("limit");
  EXPECT_THAT(evaluation_from_json(nested).error().text(),
              HasSubstr("'checks[0].figures[0].limit' is missing"));
}

TEST(JsonForms, AnEvaluationFromBeforeThePoolsAndGatesIsRead) {
  Json json = to_json(make_full_evaluation());
  for (const std::string& name : kLaterFields) ASSERT_EQ(json.erase(name), 1U) << name;
  const Result<Evaluation> read = evaluation_from_json(json);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_FALSE(read->private_pool);
  EXPECT_FALSE(read->gates);
}

TEST(JsonForms, PoolsAndGatesTravelAndAFailureTakesTheirSpeed) {
  Evaluation evaluation{.verdict = Verdict::accepted};
  evaluation.public_pool = {.cases = 6, .passed = 6, .speedup = 4.5};
  evaluation.sealed_pool = {.cases = 3, .passed = 3};
  evaluation.generality_gap = 0.02;
  evaluation.sealed_seed = 17;
  evaluation.gates = {{.name = "thread", .verdict = Verdict::accepted, .cases = 3}};
  evaluation.failed_case = "private_3";
  const Json json = to_json(evaluation);
  EXPECT_EQ(json["public"], (Json{{"cases", 6}, {"passed", 6}, {"speedup", 4.5}}));
  EXPECT_EQ(json["private"], nullptr);
  EXPECT_EQ(json["sealed"]["speedup"], nullptr);
  EXPECT_EQ(json["gates"][0]["name"], "thread");
  EXPECT_EQ(json.dump().find("private_3"), std::string::npos) << "never written down";
  EXPECT_EQ(to_json(evaluation_from_json(through_text(json)).value()), json);
  evaluation.verdict = Verdict::race;
  const Evaluation failed = make_evaluation(evaluation);
  EXPECT_FALSE(failed.public_pool->speedup);
  EXPECT_FALSE(failed.generality_gap);
  EXPECT_EQ(failed.public_pool->passed, 6);
}

TEST(JsonForms, WrongTypesAreNamedWithWhatWasFound) {
  Json json = to_json(make_full_evaluation());
  json["checks"][0]["verdict"] = "splendid";
  EXPECT_THAT(evaluation_from_json(json).error().text(),
              AllOf(HasSubstr("checks[0].verdict"), HasSubstr("splendid")));
  json = to_json(make_full_evaluation());
  json["measurements"][0]["threads"] = 1LL << 40;
  EXPECT_THAT(evaluation_from_json(json).error().text(), HasSubstr("measurements[0].threads"));
  json["measurements"][0]["threads"] = 1.5;
  EXPECT_THAT(evaluation_from_json(json).error().text(), HasSubstr("an integer"));
  json = to_json(make_full_evaluation());
  json["build_s"] = "fast";
  EXPECT_THAT(evaluation_from_json(json).error().text(), HasSubstr("build_s"));
  EXPECT_FALSE(evaluation_from_json(Json::array()).ok());
  EXPECT_FALSE(idea_from_json(Json(3)).ok());
}

TEST(JsonText, SurvivesBytesThatAreNotUtf8) {
  Artifact artifact;
  artifact.log = "error: \xff\xfe";
  EXPECT_THAT(json_text(to_json(artifact)), HasSubstr("error: \xef\xbf\xbd"));
}

TEST(ParseJson, SaysWhatAndWhere) {
  const Result<Json> parsed = parse_json("{\"a\": ", "event 7");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().text(), AllOf(HasSubstr("event 7"), HasSubstr("column 7")));
}

TEST(ParseJson, RefusesWhatNestsWithoutEnd) {
  const Result<Json> parsed =
      parse_json(std::string(1 << 20, '[') + std::string(1 << 20, ']'), "event 7");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().text(), HasSubstr("nests deeper than"));
}

}  // namespace
}  // namespace kbeam
