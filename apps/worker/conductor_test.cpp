#include "apps/worker/conductor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "apps/worker/seats_fixture.h"
#include "execute/task_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ConductorTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *make_temporary_folder(fs::temp_directory_path(), "conductor-");
    TaskForTests made = task_for_tests(folder_);
    task_.task = std::move(made.task);
    task_.plans = std::move(made.files.plans);
    task_.images = std::move(made.files.images);
    task_.task_hash = "99";
    options_.device_uuid = "GPU-1";
    lab_.behaviour[SeatRole::candidate].event_ns = 100'000;
    lab_.behaviour[SeatRole::candidate].slope_ns = 90'000;
    lab_.behaviour[SeatRole::reference].event_ns = 200'000;
    lab_.behaviour[SeatRole::reference].slope_ns = 190'000;
  }
  void TearDown() override {
    fs::remove_all(folder_);
    EXPECT_EQ(lab_.alive, 0) << "a seat outlived the evaluation";
  }

  Conducted conduct(std::optional<SavedProgress> progress = std::nullopt) {
    return conduct_with(lab_.tools(), std::move(progress));
  }
  Conducted conduct_with(ConductorTools tools, std::optional<SavedProgress> progress) {
    Conductor conductor(task_, options_, std::move(tools), lab_.clock);
    Result<Conducted> conducted = conductor.run(std::move(progress));
    EXPECT_TRUE(conducted.ok());
    return conducted.ok() ? std::move(*conducted) : Conducted();
  }
  Evaluation judged() { return conduct().result.evaluation; }

  fs::path folder_;
  LoadedTask task_;
  ConductorOptions options_;
  SeatLab lab_;
};

CheckReport wrong(const std::string& sentence) {
  CheckReport report;
  report.verdict = Verdict::wrong_value;
  report.sentence = sentence;
  report.outputs_checked = 1;
  report.figures = {{"error", 7, 1, "eps", "element 3"}};
  return report;
}

SeatFailure died(Verdict verdict, const std::string& sentence) {
  return {verdict, sentence, false};
}

TEST_F(ConductorTest, TheOrderOfAnEvaluation) {
  task_.task.rule = {.name = "screen", .pairs_per_process = 1, .processes = 1};
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::accepted) << evaluation.reason;
  EXPECT_EQ(evaluation.sandbox, SandboxLevel::landlock_seccomp) << "as the planner had it";
  std::vector<std::string> story = lab_.story();
  // The order within the pair is drawn.
  ASSERT_EQ(story.size(), 16U);
  std::sort(story.begin() + 11, story.begin() + 13);
  EXPECT_THAT(story,
              ElementsAre("start candidate", "probe candidate",                  //
                          "prepare candidate small", "call candidate small",     //
                          "prepare candidate hidden", "call candidate hidden",   //
                          "start reference",                                     //
                          "prepare candidate large", "prepare reference large",  //
                          "call candidate large", "call reference large",        // not counted
                          "call candidate large", "call reference large",        // the pair
                          "slope candidate large", "slope reference large", "probe reference"));
}

TEST_F(ConductorTest, EveryCallBeforeThePairsIsCheckedInFull) {
  judged();
  EXPECT_EQ(lab_.calls_of(SeatRole::candidate, "small").at(0).depth, SeatDepth::full);
  EXPECT_EQ(lab_.calls_of(SeatRole::candidate, "hidden").at(0).depth, SeatDepth::full);
  for (const SeatRole role : {SeatRole::candidate, SeatRole::reference}) {
    const auto calls = lab_.calls_of(role, "large");
    ASSERT_EQ(calls.size(), 3U * (1 + 9));
    for (std::size_t process = 0; process < 3; ++process)
      EXPECT_EQ(calls[process * 10].depth, SeatDepth::full);
  }
}

TEST_F(ConductorTest, CountsThePairsAndNotTheFirstCalls) {
  const Evaluation evaluation = judged();
  ASSERT_THAT(evaluation.measurements, SizeIs(1));
  const Measurement& measurement = evaluation.measurements[0];
  EXPECT_THAT(measurement.samples.candidate_ns, SizeIs(27));
  EXPECT_THAT(measurement.samples.reference_ns, SizeIs(27));
  EXPECT_EQ(measurement.samples.process.front(), 0);
  EXPECT_EQ(measurement.samples.process.back(), 2);
  EXPECT_EQ(measurement.reference, "reference-1");
  EXPECT_EQ(measurement.stopping_rule, "promote: fixed 9 x 3");
  EXPECT_EQ(measurement.stop_reason, "all pairs taken");
  EXPECT_NEAR(measurement.summary.speedup, 2, 0.02);
  EXPECT_EQ(measurement.summary.comparison, Comparison::faster);
  EXPECT_EQ(measurement.summary.pairs, 27);
}

TEST_F(ConductorTest, TheEvaluationIsTheJudgesNoun) {
  options_.weaknesses = {"process 7 computes on the same GPU"};
  const Conducted conducted = conduct();
  const Evaluation& evaluation = conducted.result.evaluation;
  EXPECT_EQ(evaluation.candidate_id, "candidate-1");
  EXPECT_EQ(evaluation.stage, Stage::promote);
  EXPECT_EQ(evaluation.grade, "fp32");
  EXPECT_THAT(evaluation.weaknesses,
              ElementsAre("process 7 computes on the same GPU", "pageable memory can be reached"));
  ASSERT_THAT(evaluation.checks, SizeIs(3));  // timed outputs are checked too
  EXPECT_EQ(evaluation.checks[0].case_name, "small");
  EXPECT_EQ(evaluation.checks[2].case_name, "large");
  EXPECT_EQ(evaluation.checks[2].outputs_checked, 30);
  EXPECT_EQ(evaluation.checks[2].grade, "fp32");
  EXPECT_EQ(conducted.result.task_id, "task-1");
  EXPECT_EQ(conducted.result.task_hash, "99");
  EXPECT_EQ(conducted.result.device.uuid, "GPU-1");
  EXPECT_GT(conducted.result.wall_s, 0);
  EXPECT_GT(evaluation.measure_s, evaluation.check_s);
}

TEST_F(ConductorTest, BothSidesOfAPairSeeTheSameFreshInputs) {
  judged();
  std::vector<SeatCallRequest> timed;
  for (const SeatLab::Entry& entry : lab_.log)
    if (entry.what == "call" && entry.request.case_name == "large") timed.push_back(entry.request);
  std::set<std::uint64_t> seeds;
  std::set<std::uint64_t> secrets;
  for (std::size_t i = 0; i < timed.size(); i += 2) {
    EXPECT_EQ(timed[i].seed, timed[i + 1].seed);
    EXPECT_TRUE(seeds.insert(timed[i].seed).second) << "inputs came back";
    EXPECT_TRUE(timed[i].cold);
  }
  for (const SeatCallRequest& request : timed)
    EXPECT_TRUE(secrets.insert(request.secret).second) << "a secret came back";
}

TEST_F(ConductorTest, PairsComeInBlocksWhoseOrderIsDrawnAndMirrored) {
  task_.task.rule = {.name = "long", .pairs_per_process = 64, .processes = 1};
  const auto first = judged().measurements.at(0).samples.candidate_first;
  int blocks_with_candidate_first = 0;
  for (std::size_t pair = 0; pair < first.size(); pair += 2) {
    EXPECT_NE(first[pair], first[pair + 1]);
    blocks_with_candidate_first += first[pair];
  }
  EXPECT_GT(blocks_with_candidate_first, 6);
  EXPECT_LT(blocks_with_candidate_first, 26);
  // What was written down is what was done.
  std::vector<SeatRole> order;
  for (const SeatLab::Entry& entry : lab_.log)
    if (entry.what == "call" && entry.request.case_name == "large") order.push_back(entry.role);
  for (std::size_t pair = 0; pair < first.size(); ++pair)
    EXPECT_EQ(order[2 + 2 * pair] == SeatRole::candidate, first[pair] == 1) << pair;
}

TEST_F(ConductorTest, OneTimedOutputInEightIsCheckedInFull) {
  task_.task.rule = {.name = "long", .pairs_per_process = 400, .processes = 1};
  judged();
  int full = 0;
  for (const SeatCallRequest& request : lab_.calls_of(SeatRole::candidate, "large"))
    full += request.depth == SeatDepth::full ? 1 : 0;
  EXPECT_GT(full, 25);
  EXPECT_LT(full, 80);
}

TEST_F(ConductorTest, WithoutAQuickPlanEveryOutputIsCheckedInFull) {
  task_.task.cases[2].quick_check_plan.clear();
  judged();
  for (const SeatCallRequest& request : lab_.calls_of(SeatRole::candidate, "large"))
    EXPECT_EQ(request.depth, SeatDepth::full);
}

TEST_F(ConductorTest, EveryProcessIsFreshOnBothSides) {
  judged();
  EXPECT_EQ(lab_.count("start", SeatRole::candidate), 3);
  EXPECT_EQ(lab_.count("start", SeatRole::reference), 3);
  EXPECT_EQ(lab_.count("start", SeatRole::witness), 0);
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), SizeIs(1)) << "checked once";
}

TEST_F(ConductorTest, SeatsGetThePlansOfTheirSubject) {
  judged();
  const SeatOptions& candidate = lab_.options.at(0);
  ASSERT_THAT(candidate.cases, SizeIs(3));
  EXPECT_EQ(candidate.cases[0].the_case.name, "small");
  EXPECT_EQ(candidate.cases[2].subject,
            &task_.plans.at(task_.task.candidate.plan_of_case.at("large")));
  EXPECT_EQ(candidate.cases[2].quick_check, &task_.plans.at(task_.task.cases[2].quick_check_plan));
  EXPECT_EQ(candidate.cases[0].generate, nullptr);
  EXPECT_FALSE(candidate.plain_memory);
  const SeatOptions& reference = lab_.options.at(1);
  ASSERT_THAT(reference.cases, SizeIs(1));
  EXPECT_EQ(reference.cases[0].subject,
            &task_.plans.at(task_.task.reference->plan_of_case.at("large")));
}

TEST_F(ConductorTest, EndsEarlyWhenEveryIntervalIsClear) {
  task_.task.rule.clear_ratio = 1.5;
  const Evaluation evaluation = judged();
  EXPECT_EQ(lab_.count("start", SeatRole::candidate), 1);
  EXPECT_THAT(evaluation.measurements.at(0).stop_reason, HasSubstr("clear"));
  EXPECT_EQ(evaluation.verdict, Verdict::accepted);
}

TEST_F(ConductorTest, ACaseThatIsClearTakesFewerPairsInEveryProcess) {
  task_.task.rule = device_rules().promote;
  lab_.behaviour[SeatRole::reference].event_ns = 300'000;
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::accepted);
  // The first whole block at or beyond 6 pairs, six times.
  EXPECT_THAT(evaluation.measurements.at(0).samples.candidate_ns, SizeIs(6 * 6));
  EXPECT_EQ(evaluation.measurements.at(0).summary.comparison, Comparison::faster);
}

TEST_F(ConductorTest, TheNoiseFloorOfTheTaskWidensDelta) {
  task_.task.noise["large"] = 0.04;
  EXPECT_DOUBLE_EQ(judged().measurements.at(0).noise_floor, 0.04);
}

// ---- failures of the candidate ----

TEST_F(ConductorTest, AWrongOutputEndsItBeforeAnythingIsTimed) {
  lab_.behaviour[SeatRole::candidate].report = [](int) { return wrong("element 3 is off"); };
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_value);
  EXPECT_EQ(evaluation.reason, "case small (dense): element 3 is off");
  EXPECT_EQ(evaluation.checks.at(0).figures.at(0).value, 7);
  EXPECT_NE(evaluation.checks.at(0).seed, 0U) << "the seed brings the failure back";
  EXPECT_EQ(lab_.count("start", SeatRole::reference), 0);
}

TEST_F(ConductorTest, AWrongTimedOutputLeavesNoSpeed) {
  lab_.behaviour[SeatRole::candidate].report = [](int call) {
    if (call == 20) return wrong("element 3 is off");
    CheckReport report;
    report.verdict = Verdict::accepted;
    report.outputs_checked = 1;
    return report;
  };
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::wrong_value);
  EXPECT_THAT(evaluation.measurements, IsEmpty());
}

TEST_F(ConductorTest, WhateverEndsTheCandidatesSeatIsItsVerdict) {
  for (const Verdict verdict :
       {Verdict::crashed, Verdict::timed_out, Verdict::wrote_outside, Verdict::late_write,
        Verdict::mutated_input, Verdict::over_memory, Verdict::bad_plan}) {
    for (const int at : {0, 2, 7}) {  // the first check, the first call to be timed, a pair
      lab_ = SeatLab();
      lab_.behaviour[SeatRole::candidate].fail_call = [&](int call) {
        return call == at ? std::optional(died(verdict, "it ended")) : std::nullopt;
      };
      const Evaluation evaluation = judged();
      EXPECT_EQ(evaluation.verdict, verdict) << at;
      EXPECT_THAT(evaluation.reason, HasSubstr("it ended"));
      EXPECT_THAT(evaluation.measurements, IsEmpty());
    }
  }
}

TEST_F(ConductorTest, APlanThatTheDeviceRefusesIsABadPlan) {
  lab_.behaviour[SeatRole::candidate].start_failure =
      SeatFailure{Verdict::bad_plan, "too much shared memory", false};
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::bad_plan);
  EXPECT_EQ(evaluation.reason, "too much shared memory");
}

TEST_F(ConductorTest, APrivateCaseSaysOnlyThatItFailed) {
  std::vector<std::string> lines;
  ConductorTools tools = lab_.tools();
  tools.say = [&](const std::string& line) { lines.push_back(line); };
  lab_.behaviour[SeatRole::candidate].report = [](int call) {
    CheckReport report;
    report.verdict = Verdict::accepted;
    report.outputs_checked = 1;
    return call == 1 ? wrong("element 3 is off") : report;
  };
  const Evaluation evaluation = conduct_with(std::move(tools), std::nullopt).result.evaluation;
  EXPECT_EQ(evaluation.verdict, Verdict::failed_private);
  EXPECT_EQ(evaluation.reason, "failed a private case");
  EXPECT_THAT(lines, Each(Not(HasSubstr("hidden"))));
}

TEST_F(ConductorTest, ATroubleOfOursOnAPrivateCaseIsNotTheCandidates) {
  lab_.behaviour[SeatRole::candidate].fail_call = [](int call) {
    return call == 1 ? std::optional(died(Verdict::engine_failed, "the pipe broke")) : std::nullopt;
  };
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::engine_failed);
  EXPECT_EQ(evaluation.reason, "the pipe broke");
}

TEST_F(ConductorTest, ATimeBelowTheFloorIsNotBelieved) {
  task_.task.cases[2].bytes = 600'000'000;
  options_.ceilings.bytes_per_s = 5e12;  // 120 us
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::below_physics_floor);
  EXPECT_THAT(evaluation.reason, HasSubstr("is below 120000 ns"));
  EXPECT_THAT(evaluation.measurements, IsEmpty());
}

TEST_F(ConductorTest, OperationsHaveAFloorToo) {
  task_.task.cases[2].flops = 1e11;
  options_.ceilings.flops_per_s = 1e15;  // 100 us: the median of the samples is a little above
  EXPECT_EQ(judged().verdict, Verdict::accepted);
  task_.task.cases[2].flops = 1.1e11;
  EXPECT_EQ(judged().verdict, Verdict::below_physics_floor);
}

TEST(FloorTest, OutputsThatMayStayInTheCacheDoNotCount) {
  TaskCase task_case;
  task_case.bytes = 1e9;
  task_case.tensors = {{"B", KBEAM_OUTPUT, KBEAM_F32, {100'000'000}, {1}}};  // 400 MB
  DeviceCeilings ceilings{.bytes_per_s = 1e12, .flops_per_s = 0, .l2_bytes = 0};
  EXPECT_DOUBLE_EQ(floor_ns(task_case, ceilings), 1e6);
  ceilings.l2_bytes = 1e8;
  EXPECT_DOUBLE_EQ(floor_ns(task_case, ceilings), 0.9e6);
  ceilings.l2_bytes = 1e12;
  EXPECT_DOUBLE_EQ(floor_ns(task_case, ceilings), 0.6e6);
  EXPECT_DOUBLE_EQ(floor_ns(task_case, {}), 0) << "nothing is known: nothing is refused";
}

TEST_F(ConductorTest, WorkThatHidesFromTheEventsIsSeenByTheHostsClock) {
  lab_.behaviour[SeatRole::candidate].slope_ns = 400'000;
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::below_physics_floor);
  EXPECT_THAT(evaluation.reason, HasSubstr("the clocks disagree"));
  EXPECT_EQ(lab_.count("slope", SeatRole::candidate), 3) << "asked again: the host may be busy";
}

// A mark in scratch makes all replays of a slope but the first quick: its readings agree with the
// events. The timed calls have scratch without marks.
TEST_F(ConductorTest, WorkThatHidesFromTheSlopeTooIsSeenInTheCallsThemselves) {
  for (const SeatRole role : {SeatRole::candidate, SeatRole::reference}) {
    lab_ = SeatLab();
    const double event_ns = lab_.behaviour[role].event_ns;
    lab_.behaviour[role].slope_ns = event_ns;
    lab_.behaviour[role].hidden_ns = [](int) { return 5e6; };
    const Evaluation evaluation = judged();
    EXPECT_EQ(evaluation.verdict,
              role == SeatRole::candidate ? Verdict::below_physics_floor : Verdict::engine_failed);
    EXPECT_THAT(evaluation.reason, HasSubstr("the clocks disagree"));
    EXPECT_THAT(evaluation.measurements, IsEmpty());
  }
}

TEST_F(ConductorTest, AHostThatIsBusyInAllCallsButOneIsNoDisagreement) {
  lab_.behaviour[SeatRole::candidate].hidden_ns = [](int call) {
    return call % 8 == 4 ? 80e3 : 5e6;
  };
  EXPECT_EQ(judged().verdict, Verdict::accepted);
}

TEST_F(ConductorTest, LaunchCostsAreNoDisagreement) {
  lab_.behaviour[SeatRole::candidate].event_ns = 3'000;
  lab_.behaviour[SeatRole::candidate].slope_ns = 12'000;
  EXPECT_EQ(judged().verdict, Verdict::accepted);
}

// ---- troubles that are not the candidate's ----

TEST_F(ConductorTest, TheReferencesTroublesAreNeverTheCandidates) {
  const auto spoil = [&](const std::function<void(SeatBehaviour&)>& change) {
    lab_ = SeatLab();
    change(lab_.behaviour[SeatRole::reference]);
    const Evaluation evaluation = judged();
    EXPECT_EQ(evaluation.verdict, Verdict::engine_failed);
    EXPECT_THAT(evaluation.reason, HasSubstr("reference"));
    EXPECT_THAT(evaluation.measurements, IsEmpty());
  };
  spoil([](SeatBehaviour& reference) {
    reference.start_failure = SeatFailure{Verdict::bad_plan, "too large", false};
  });
  spoil([](SeatBehaviour& reference) {
    reference.start_error = Error{ErrorCode::io, "start a seat", "no more processes", ""};
  });
  spoil([](SeatBehaviour& reference) {
    reference.fail_call = [](int call) {
      return call == 4 ? std::optional(died(Verdict::crashed, "it ended")) : std::nullopt;
    };
  });
  spoil([](SeatBehaviour& reference) {
    reference.report = [](int) { return wrong("element 3 is off"); };
  });
  spoil([](SeatBehaviour& reference) { reference.slope_ns = 1e9; });
}

TEST_F(ConductorTest, AReferenceThatLacksATimedCaseIsOurs) {
  task_.task.reference->plan_of_case.clear();
  task_.task.reference->not_supported["large"] = "only for n below 8";
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::engine_failed);
  EXPECT_THAT(evaluation.reason, HasSubstr("only for n below 8"));
}

TEST_F(ConductorTest, ASeatThatCannotBeStartedIsOurs) {
  lab_.behaviour[SeatRole::candidate].start_error =
      Error{ErrorCode::io, "start a seat", "no more processes", ""};
  const Conducted conducted = conduct();
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::engine_failed);
  EXPECT_EQ(conducted.result.device_trouble, "") << "that says nothing about the device";
}

TEST_F(ConductorTest, ASeatOnAnotherDeviceThanTheLockedOneIsRefused) {
  options_.device_uuid = "GPU-7";
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::engine_failed);
  EXPECT_THAT(evaluation.reason, HasSubstr("GPU-7 is locked"));
}

// ---- the device ----

TEST_F(ConductorTest, IsProbedBeforeAndAfterEveryProcess) {
  judged();
  EXPECT_EQ(lab_.count("probe", SeatRole::candidate), 3) << "before anything of it runs";
  EXPECT_EQ(lab_.count("probe", SeatRole::reference), 3) << "after the timings";
  EXPECT_EQ(lab_.log.back().what, "probe");
}

TEST_F(ConductorTest, AfterACrashAFreshProcessIsAsked) {
  task_.task.kind = TaskKind::check;
  lab_.behaviour[SeatRole::candidate].fail_call = [](int) {
    return std::optional(died(Verdict::crashed, "illegal address"));
  };
  lab_.behaviour[SeatRole::candidate].probe = [](int probe) { return probe == 0; };
  const Conducted conducted = conduct();
  EXPECT_EQ(lab_.count("start", SeatRole::witness), 1);
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::crashed);
  EXPECT_EQ(conducted.result.device_trouble, "");
}

TEST_F(ConductorTest, ADeviceThatFailsItsProbeVoidsWhatItSaidSinceTheLastGoodOne) {
  std::optional<SavedProgress> saved;
  ConductorTools tools = lab_.tools();
  tools.save = [&](const SavedProgress& progress) {
    saved = progress;
    return Result<void>();
  };
  // Good until the end of the second process.
  lab_.behaviour[SeatRole::reference].probe = [](int probe) { return probe == 0; };
  lab_.behaviour[SeatRole::witness].probe = [](int) { return false; };
  const Conducted conducted = conduct_with(std::move(tools), std::nullopt);
  EXPECT_EQ(conducted.end, Conducted::End::finished);
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::engine_failed);
  EXPECT_THAT(conducted.result.device_trouble, HasSubstr("wrong answer in a fresh process"));
  EXPECT_THAT(conducted.result.evaluation.measurements, IsEmpty());
  ASSERT_TRUE(saved.has_value());
  // The probe before the second process was the last good one.
  const Evaluation& kept = saved->now.so_far.evaluation;
  EXPECT_EQ(kept.verdict, Verdict::accepted);
  EXPECT_THAT(kept.measurements.at(0).samples.candidate_ns, SizeIs(9));
  EXPECT_THAT(saved->now.checked, ElementsAre("small", "hidden"));
}

TEST_F(ConductorTest, ACandidateIsNotBlamedForADeviceThatFails) {
  lab_.behaviour[SeatRole::candidate].report = [](int) { return wrong("element 3 is off"); };
  lab_.behaviour[SeatRole::candidate].probe = [](int probe) { return probe == 0; };
  lab_.behaviour[SeatRole::witness].start_failure =
      SeatFailure{Verdict::crashed, "no context", false};
  const Conducted conducted = conduct();
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::engine_failed);
  EXPECT_THAT(conducted.result.device_trouble, HasSubstr("no process can use it: no context"));
}

TEST_F(ConductorTest, FullMemoryIsNoFaultOfTheDevice) {
  lab_.behaviour[SeatRole::candidate].probe = [](int) { return false; };
  lab_.behaviour[SeatRole::witness].start_failure =
      SeatFailure{Verdict::over_memory, "somebody else holds its memory", false};
  const Conducted conducted = conduct();
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::engine_failed);
  EXPECT_EQ(conducted.result.device_trouble, "");
}

TEST_F(ConductorTest, ClocksAreReadBeforeAndAfterEveryCase) {
  ConductorTools tools = lab_.tools();
  int readings = 0;
  tools.read_condition = [&] {
    return std::optional(DeviceCondition{.sm_clock_mhz = 1900.0 + readings++});
  };
  const Conducted conducted = conduct_with(std::move(tools), std::nullopt);
  ASSERT_THAT(conducted.result.conditions, SizeIs(6));
  EXPECT_EQ(conducted.result.conditions[1].sm_clock_mhz, 1901);
  EXPECT_EQ(conducted.result.conditions[1].case_name, "large");
  EXPECT_EQ(conducted.result.conditions[5].process, 2);
}

// ---- cases that are not supported ----

TEST_F(ConductorTest, AnUnsupportedCheckCaseIsSaidAndLeftOut) {
  task_.task.candidate.plan_of_case.erase("small");
  task_.task.candidate.not_supported["small"] = "only for n above 100";
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::accepted);
  EXPECT_EQ(evaluation.checks.at(0).verdict, Verdict::not_supported);
  EXPECT_EQ(evaluation.checks.at(0).sentence, "only for n above 100");
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), IsEmpty());
}

TEST_F(ConductorTest, WithNoTimedCaseLeftItIsNotSupported) {
  task_.task.candidate.plan_of_case.erase("large");
  task_.task.candidate.not_supported["large"] = "only for n below 8";
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::not_supported);
  EXPECT_EQ(evaluation.reason, "only for n below 8");
  EXPECT_THAT(lab_.log, IsEmpty()) << "no device is needed to say so";
}

// ---- the other kinds ----

TEST_F(ConductorTest, ACheckTimesNothing) {
  task_.task.kind = TaskKind::check;
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::accepted);
  EXPECT_THAT(evaluation.checks, SizeIs(2));
  EXPECT_THAT(evaluation.measurements, IsEmpty());
  EXPECT_EQ(lab_.count("start", SeatRole::reference), 0);
}

TEST_F(ConductorTest, AFixedSeedBringsAnInputBack) {
  task_.task.kind = TaskKind::check;
  task_.task.fixed_seed = 4711;
  judged();
  EXPECT_EQ(lab_.calls_of(SeatRole::candidate, "small").at(0).seed, 4711U);
}

TEST_F(ConductorTest, PlainRunsHashTheSameOutputsEveryTime) {
  task_.task.kind = TaskKind::plain;
  const Conducted first = conduct();
  EXPECT_THAT(first.result.output_hashes, SizeIs(2));
  options_.wrapper = {"compute-sanitizer", "--tool", "memcheck"};
  const Conducted second = conduct();
  EXPECT_EQ(second.result.output_hashes, first.result.output_hashes);
  EXPECT_TRUE(lab_.options.back().plain_memory);
  EXPECT_EQ(lab_.options.back().wrapper, options_.wrapper);
  EXPECT_GT(lab_.options.back().call_timeout_s, 10 * task_.task.call_timeout_s)
      << "tools slow every call down";
  EXPECT_FALSE(first.ending.has_value());
  ASSERT_TRUE(second.ending.has_value());
  EXPECT_THAT(second.ending->output, HasSubstr("0 errors"));
}

TEST_F(ConductorTest, TrustedSubjectsAreOnlyTimed) {
  task_.task.kind = TaskKind::time_only;
  task_.task.check_cases.clear();
  lab_.behaviour[SeatRole::candidate].report = [](int) { return wrong("no output of theirs"); };
  const Conducted conducted = conduct();
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::accepted);
  ASSERT_THAT(conducted.result.case_samples_ns.at("large"), SizeIs(27));
  EXPECT_NEAR(conducted.result.case_ns.at("large"), 100'200, 1);
  EXPECT_NEAR(conducted.result.case_least_ns.at("large"), 100'000, 1);
  EXPECT_EQ(lab_.count("start", SeatRole::reference), 0);
}

TEST_F(ConductorTest, ATrustedCallThatIsTooLongIsNotRepeated) {
  task_.task.kind = TaskKind::time_only;
  task_.task.check_cases.clear();
  task_.task.timed_cases = {"large", "small"};
  task_.task.longest_call_s = {{"large", 50e-6}, {"small", 1}};
  const TaskResult result = conduct().result;
  EXPECT_EQ(lab_.calls_of(SeatRole::candidate, "large").size(), 1U);
  EXPECT_EQ(result.case_ns.count("large"), 0U);
  EXPECT_EQ(result.case_ns.count("small"), 1U);
  ASSERT_THAT(result.evaluation.checks, SizeIs(1));
  EXPECT_EQ(result.evaluation.checks[0].verdict, Verdict::timed_out);
  EXPECT_THAT(result.evaluation.checks[0].sentence, HasSubstr("longer than the 5e-05 s"));
}

TEST_F(ConductorTest, ATrustedCaseThatDiesLeavesTheOthersTheirTime) {
  task_.task.kind = TaskKind::time_only;
  task_.task.check_cases.clear();
  task_.task.timed_cases = {"large", "small"};
  lab_.behaviour[SeatRole::candidate].fail_call = [](int call) {
    return call == 2 ? std::optional(died(Verdict::crashed, "it fell")) : std::nullopt;
  };
  const TaskResult result = conduct().result;
  EXPECT_EQ(result.evaluation.verdict, Verdict::accepted);
  EXPECT_EQ(lab_.count("start", SeatRole::candidate), 2);
  EXPECT_EQ(result.case_ns.count("large"), 0U);
  EXPECT_EQ(result.case_ns.count("small"), 1U);
  ASSERT_THAT(result.evaluation.checks, SizeIs(1));
  EXPECT_EQ(result.evaluation.checks[0].sentence, "it fell");
}

TEST_F(ConductorTest, PlansForAnotherDeviceAreNobodysFault) {
  options_.device_is = {"Another GPU", 100, 148};
  const Evaluation evaluation = judged();
  EXPECT_EQ(evaluation.verdict, Verdict::engine_failed);
  EXPECT_THAT(evaluation.reason, HasSubstr("planned for NVIDIA H200 (sm_90, 132 multiprocessors)"));
  EXPECT_THAT(evaluation.reason, HasSubstr("this device is Another GPU (sm_100, 148)"));
  EXPECT_EQ(lab_.count("start", SeatRole::candidate), 0);
}

TEST_F(ConductorTest, ABaselinesClockIsNotDoubted) {
  task_.task.reference->may_use_libraries = true;
  lab_.behaviour[SeatRole::reference].slope_ns = 1e9;
  EXPECT_EQ(judged().verdict, Verdict::accepted);
  EXPECT_EQ(lab_.count("slope", SeatRole::reference), 0);
}

// ---- progress ----

class ResumeTest : public ConductorTest {
 protected:
  // Runs until it ends, starting again after every kill; `kill_at` counts the seats' operations of
  // the first session.
  Conducted run_with_a_kill(int kill_at) {
    std::optional<SavedProgress> saved;
    const auto tools = [&](SeatLab& lab) {
      ConductorTools made = lab.tools();
      made.save = [&saved](const SavedProgress& progress) {
        saved = progress;
        return Result<void>();
      };
      return made;
    };
    lab_.kill_at = kill_at;
    Conductor first(task_, options_, tools(lab_), lab_.clock);
    try {
      return *first.run(std::nullopt);
    } catch (const Killed&) {
      lab_.kill_at = -1;
      killed_ = true;
    }
    Conductor second(task_, options_, tools(lab_), lab_.clock);
    return *second.run(saved);
  }
  bool killed_ = false;
};

TEST_F(ResumeTest, AKillAtAnyStepLosesOnlyTheCaseInHand) {
  task_.task.rule = {.name = "short", .pairs_per_process = 4, .processes = 2};
  task_.task.timed_cases = {"large", "small"};
  const SeatLab fresh = lab_;
  const Conducted whole = run_with_a_kill(-1);
  ASSERT_EQ(whole.result.evaluation.verdict, Verdict::accepted);
  const int steps = static_cast<int>(lab_.log.size());
  ASSERT_GT(steps, 40);
  for (int step = 0; step < steps; ++step) {
    lab_ = fresh;
    killed_ = false;
    const Conducted resumed = run_with_a_kill(step);
    ASSERT_TRUE(killed_);
    const Evaluation& evaluation = resumed.result.evaluation;
    ASSERT_EQ(evaluation.verdict, Verdict::accepted) << step << ": " << evaluation.reason;
    ASSERT_THAT(evaluation.measurements, SizeIs(2));
    EXPECT_EQ(lab_.log.back().what, "probe") << step << ": a result that no probe confirms";
    for (const Measurement& measurement : evaluation.measurements) {
      ASSERT_THAT(measurement.samples.candidate_ns, SizeIs(8)) << step;
      EXPECT_EQ(std::ranges::count(measurement.samples.process, 0), 4) << step;
      EXPECT_EQ(std::ranges::count(measurement.samples.process, 1), 4) << step;
    }
    // At most one case is done twice: its calls, and what starts two seats again.
    EXPECT_LE(static_cast<int>(lab_.log.size()), steps + 24) << step;
    for (const char* name : {"small", "hidden"}) {
      const auto report = std::ranges::find(evaluation.checks, name, &CheckReport::case_name);
      ASSERT_NE(report, evaluation.checks.end());
      EXPECT_EQ(report->verdict, Verdict::accepted);
    }
  }
}

TEST_F(ResumeTest, TimeThatIsUpPausesAndNothingIsDoneTwice) {
  task_.task.rule = {.name = "short", .pairs_per_process = 4, .processes = 3};
  lab_.call_s = 1;
  options_.pieces_s = 25;  // a case in a process takes 10 s
  std::optional<SavedProgress> saved;
  int sessions = 0;
  Conducted conducted;
  do {
    ConductorTools tools = lab_.tools();
    tools.save = [&](const SavedProgress& progress) {
      saved = progress;
      return Result<void>();
    };
    conducted = conduct_with(std::move(tools), saved);
    ASSERT_LT(++sessions, 9);
    ASSERT_NE(conducted.end, Conducted::End::stuck);
  } while (conducted.end == Conducted::End::paused);
  EXPECT_EQ(sessions, 2);
  EXPECT_THAT(conducted.result.evaluation.measurements.at(0).samples.candidate_ns, SizeIs(12));
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), SizeIs(1));
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "large"), SizeIs(3 * 5));
  EXPECT_NEAR(conducted.result.wall_s, 2 + 30, 0.01);
}

TEST_F(ResumeTest, ACaseThatTakesLongerThanAPieceIsSaidToBeStuck) {
  lab_.call_s = 1;
  options_.pieces_s = 3;
  task_.task.check_cases.clear();
  EXPECT_EQ(conduct().end, Conducted::End::stuck);
}

TEST_F(ResumeTest, AnotherDeviceMeasuresAnewAndKeepsTheChecks) {
  std::optional<SavedProgress> saved;
  const auto saving = [&] {
    ConductorTools tools = lab_.tools();
    tools.save = [&](const SavedProgress& progress) {
      saved = progress;
      return Result<void>();
    };
    return tools;
  };
  // The first device is left in the middle of the second process.
  lab_.kill_at = 2 + 4 + 1 + 2 + 2 + 18 + 2 + 1 + 8;
  EXPECT_THROW(conduct_with(saving(), std::nullopt), Killed);
  ASSERT_TRUE(saved.has_value());
  ASSERT_THAT(saved->now.so_far.evaluation.measurements.at(0).samples.candidate_ns, SizeIs(9));
  lab_ = SeatLab();
  for (const SeatRole role : {SeatRole::candidate, SeatRole::reference})
    lab_.behaviour[role] = {.event_ns = 50'000, .slope_ns = 40'000, .uuid = "GPU-2"};
  options_.device_uuid = "GPU-2";
  const Conducted conducted = conduct_with(saving(), saved);
  EXPECT_EQ(conducted.result.evaluation.verdict, Verdict::accepted);
  EXPECT_EQ(conducted.result.device.uuid, "GPU-2");
  const auto& samples = conducted.result.evaluation.measurements.at(0).samples.candidate_ns;
  ASSERT_THAT(samples, SizeIs(27));
  EXPECT_THAT(samples, Each(testing::Lt(60'000))) << "a time of the first device was kept";
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), IsEmpty()) << "checks stay";
}

TEST_F(ResumeTest, WhatNoProbeConfirmedDoesNotMoveToAnotherDevice) {
  std::optional<SavedProgress> saved;
  ConductorTools tools = lab_.tools();
  tools.save = [&](const SavedProgress& progress) {
    saved = progress;
    return Result<void>();
  };
  lab_.kill_at = 4;  // after the first check, before the next probe
  EXPECT_THROW(conduct_with(std::move(tools), std::nullopt), Killed);
  ASSERT_THAT(saved->now.checked, ElementsAre("small"));
  lab_ = SeatLab();
  for (const SeatRole role : {SeatRole::candidate, SeatRole::reference})
    lab_.behaviour[role] = {.event_ns = 50'000, .slope_ns = 40'000, .uuid = "GPU-2"};
  options_.device_uuid = "GPU-2";
  conduct(saved);
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), SizeIs(1)) << "checked again";
}

TEST_F(ResumeTest, ADiskThatIsFullIsAnError) {
  ConductorTools tools = lab_.tools();
  tools.save = [](const SavedProgress&) {
    return Result<void>(Error{ErrorCode::io, "write progress", "no space left", ""});
  };
  Conductor conductor(task_, options_, std::move(tools), lab_.clock);
  EXPECT_FALSE(conductor.run(std::nullopt).ok());
}

}  // namespace
}  // namespace kbeam
