// What a module can do while it is planned, and what the engine says to it. Needs no CUDA toolkit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "target/cpu/runner.h"
#include "target/cpu/sandbox.h"
#include "target/cuda/planner.h"
#include "target/cuda/planner_fixture.h"
#include "target/cuda/planner_process.h"
#include "target/cuda/test_modules/planner_deeds.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;

PlanRequest deed_request(PlannerDeed deed, const std::string& module = "planner_deeds") {
  PlanRequest request = test_plan_request(test_module(module));
  request.axes["deed"] = static_cast<std::int64_t>(deed);
  return request;
}

Planned plan_deed(PlannerDeed deed, const std::string& module = "planner_deeds") {
  PlannerOptions options = test_planner_options();
  if (deed == PlannerDeed::hangs || deed == PlannerDeed::floods_its_output) options.timeout_s = 0.2;
  options.memory_bytes = 1LL << 30;
  const auto answers = make_launch_plans(options, {deed_request(deed, module)});
  if (!answers.ok()) return {.sentence = answers.error().text()};
  return answers->front();
}

struct Expectation {
  PlannerDeed deed;
  Verdict verdict;
  const char* sentence;
};

void PrintTo(const Expectation& expectation, std::ostream* stream) {
  *stream << "deed " << static_cast<int>(expectation.deed);
}

class PlannerAttack : public ::testing::TestWithParam<Expectation> {};

TEST_P(PlannerAttack, EndsInAClearVerdict) {
  if (GetParam().verdict == Verdict::broke_sandbox && !has_seccomp())
    GTEST_SKIP() << "no system call filter here";
  const Planned planned = plan_deed(GetParam().deed);
  EXPECT_EQ(planned.verdict, GetParam().verdict) << planned.sentence;
  EXPECT_THAT(planned.sentence, HasSubstr(GetParam().sentence));
  EXPECT_EQ(planned.plan.has_value(), planned.verdict == Verdict::accepted);
}

using D = PlannerDeed;
using V = Verdict;
INSTANTIATE_TEST_SUITE_P(
    Deeds, PlannerAttack,
    ::testing::Values(
        Expectation{D::honest, V::accepted, ""},
        Expectation{D::exits, V::crashed, "exit code 0 in its plan function"},
        Expectation{D::exits_at_once, V::crashed, "exit code 0 in its plan function"},
        Expectation{D::hangs, V::timed_out, "did not end within 0.2 s in its plan function"},
        Expectation{D::crashes, V::crashed, "SIGSEGV in its plan function"},
        Expectation{D::overflows_the_stack, V::crashed, "SIGSEGV"},
        Expectation{D::aborts, V::crashed, "SIGABRT"},
        Expectation{D::throws, V::bad_plan, "the plan function threw: no luck"},
        Expectation{D::eats_memory, V::over_memory, "the limit is 1024 MiB"},
        Expectation{D::forks, V::broke_sandbox, "in its plan function; a plan may only compute"},
        Expectation{D::starts_a_program, V::broke_sandbox, "called execve in its plan function"},
        Expectation{D::opens_a_socket, V::broke_sandbox, "called socket in its plan function"},
        Expectation{D::writes_files, V::broke_sandbox, "called open"},
        Expectation{D::depends_on_time, V::bad_plan, "differs between two runs: nodes[0].bytes is"},
        Expectation{D::depends_on_addresses, V::bad_plan, "differs between two runs: nodes[0]."},
        Expectation{D::depends_on_call_count, V::bad_plan, "differs between two runs: nodes[0]."},
        Expectation{D::depends_on_randomness, V::bad_plan, "differs between two runs: nodes[0]."},
        Expectation{D::writes_garbage, V::bad_plan, "wrote into the planner's reply"},
        Expectation{D::forges_an_answer_more, V::bad_plan, "wrote into the planner's reply"},
        Expectation{D::prints, V::accepted, ""},
        Expectation{D::floods_its_output, V::timed_out, "did not end within 0.2 s"},
        Expectation{D::registers_a_fake_kernel, V::bad_plan,
                    "node 0 (fake()) launches a kernel that is not in the device image"},
        Expectation{D::launches_from_the_host, V::bad_plan, "launches a kernel from the host"},
        Expectation{D::makes_too_many_nodes, V::bad_plan, "more than 20000 nodes"},
        Expectation{D::makes_a_huge_table, V::bad_plan, "a table of 41943040 bytes after 41943040"},
        Expectation{D::wants_too_much_scratch, V::bad_plan, "more bytes of scratch"},
        Expectation{D::passes_bytes_that_are_no_text, V::accepted, ""},
        Expectation{D::leaves_a_body_open, V::bad_plan, "a conditional body is not closed"},
        Expectation{D::is_not_supported, V::not_supported, "only for other shapes"},
        Expectation{D::asks_for_an_unknown_tensor, V::bad_plan, "no tensor Y; did you mean y?"},
        Expectation{D::asks_for_an_unknown_axis, V::bad_plan, "no axis nn; did you mean n?"},
        Expectation{D::mistakes_role_and_type, V::bad_plan,
                    "x is an input of this plan: ask for args.input; x holds float, not double"},
        Expectation{D::asks_for_a_text, V::bad_plan, "there is no text family"},
        Expectation{D::records_nothing, V::bad_plan, "the plan does nothing"}));

TEST(PlannerAttackTest, SeesNeitherFilesNorEnvironment) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP() << "no Landlock here";
  const Planned files = plan_deed(PlannerDeed::reads_files);
  ASSERT_TRUE(files.plan.has_value()) << files.sentence;
  EXPECT_EQ(files.plan->notes.at("file"), "not read");
  const Planned environment = plan_deed(PlannerDeed::reads_the_environment);
  ASSERT_TRUE(environment.plan.has_value()) << environment.sentence;
  EXPECT_EQ(environment.plan->notes.at("environment"), "0");
  EXPECT_FALSE(std::filesystem::exists("/tmp/kbeam-planner-was-here"));
}

TEST(PlannerAttackTest, NotesHoldNothingThatATerminalObeys) {
  const Planned planned = plan_deed(PlannerDeed::passes_bytes_that_are_no_text);
  ASSERT_TRUE(planned.plan.has_value()) << planned.sentence;
  const std::string& note = planned.plan->notes.at("bytes");
  EXPECT_THAT(note, HasSubstr("[2J"));
  EXPECT_EQ(note.find_first_of("\x01\x1b\x9b"), std::string::npos) << note;
}

TEST(PlannerAttackTest, AForgedReplyIsAPlanLikeAnyOther) {
  const Planned planned = plan_deed(PlannerDeed::forges_a_plan_and_exits);
  EXPECT_EQ(planned.verdict, Verdict::bad_plan) << planned.sentence;
  EXPECT_FALSE(planned.plan.has_value());
}

// Ends in one way or another, but never with a plan of two kinds.
TEST(PlannerAttackTest, SurvivesAJumpIntoADeadFrame) {
  const Planned planned = plan_deed(PlannerDeed::jumps_into_a_dead_frame);
  EXPECT_THAT(planned.verdict,
              ::testing::AnyOf(Verdict::crashed, Verdict::bad_plan, Verdict::timed_out));
}

TEST(PlannerAttackTest, NamesWhatHappensWhileItIsLoaded) {
  const Planned exits = plan_deed(PlannerDeed::honest, "planner_exits_at_load");
  EXPECT_EQ(exits.verdict, Verdict::crashed);
  EXPECT_THAT(exits.sentence, HasSubstr("exit code 0 while it was loaded"));
  const Planned lacks = plan_deed(PlannerDeed::honest, "planner_lacks_a_symbol");
  EXPECT_EQ(lacks.verdict, Verdict::bad_plan);
  EXPECT_THAT(lacks.sentence, HasSubstr("undefined symbol: cudaMalloc"));
  EXPECT_THAT(lacks.sentence, HasSubstr("a plan calls neither the CUDA runtime nor a library"));
}

TEST(PlannerAttackTest, OneBadRequestDoesNotHideTheOthers) {
  const auto answers = make_launch_plans(
      test_planner_options(),
      {deed_request(PlannerDeed::honest), deed_request(PlannerDeed::is_not_supported),
       deed_request(PlannerDeed::throws), deed_request(PlannerDeed::honest)});
  ASSERT_TRUE(answers.ok()) << answers.error().text();
  EXPECT_EQ((*answers)[0].verdict, Verdict::accepted);
  EXPECT_EQ((*answers)[1].verdict, Verdict::not_supported);
  EXPECT_EQ((*answers)[2].verdict, Verdict::bad_plan);
  EXPECT_EQ((*answers)[3].verdict, Verdict::accepted);
  EXPECT_EQ(launch_plan_hash(*(*answers)[0].plan), launch_plan_hash(*(*answers)[3].plan));
}

TEST(PlannerAttackTest, TheEnginesOwnTroubleIsNobodysVerdict) {
  PlannerOptions options = test_planner_options();
  options.planner = "/bin/false";
  const auto answers = make_launch_plans(options, {deed_request(PlannerDeed::honest)});
  ASSERT_FALSE(answers.ok());
  EXPECT_THAT(answers.error().text(), HasSubstr("/bin/false"));
  options = test_planner_options();
  const auto missing = make_launch_plans(options, {test_plan_request("/no/such/module.so")});
  EXPECT_FALSE(missing.ok());
}

TEST(PlannerFrames, ReaderStopsAtWhatIsNoFrame) {
  const PlannerRun run = read_frames(
      "kbeam-planner ready 0 0\n\nkbeam-planner plan 7 3\nabc\nkbeam-planner end 0 5\nab");
  ASSERT_EQ(run.frames.size(), 2U);
  EXPECT_EQ(run.frames[1].kind, "plan");
  EXPECT_EQ(run.frames[1].index, 7);
  EXPECT_EQ(run.frames[1].payload, "abc");
  EXPECT_TRUE(run.garbled);
  for (const char* text :
       {"x", "kbeam-planner ", "kbeam-planner plan x 0\n\n", "kbeam-planner plan 0 -1\n\n",
        "kbeam-planner plan 0 99999999999999999999\n", "kbeam-planner plan 0 1\nab"})
    EXPECT_TRUE(read_frames(text).garbled) << text;
  EXPECT_FALSE(read_frames("").garbled);
}

}  // namespace
}  // namespace kbeam
