// Every way of misbehaving that the sandbox claims to stop, and the defence that must fire.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "target/cpu/runner.h"
#include "target/cpu/runner_fixture.h"

namespace kbeam {
namespace {

using testing::axes;
using testing::fill_inputs;
using ::testing::HasSubstr;
using testing::kPatience_s;
using testing::options_for;
using testing::shapes;
using testing::start_runner;

constexpr double kShort_s = 0.2;  // for candidates that hang for ever

struct Attack {
  const char* name;
  Deed deed;
  Verdict verdict;
  const char* words;
};

void PrintTo(const Attack& attack, std::ostream* out) {
  *out << attack.name;
}
std::string name_of(const ::testing::TestParamInfo<Attack>& info) {
  return info.param.name;
}

class CallAttack : public ::testing::TestWithParam<Attack> {};

TEST_P(CallAttack, IsStoppedAndNamed) {
  const Attack& attack = GetParam();
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  if (attack.verdict == Verdict::broke_sandbox &&
      runner->sandbox() < SandboxLevel::landlock_seccomp)
    GTEST_SKIP() << "this machine has no system call filter";
  const auto planned = runner->plan(0, shapes(), axes(attack.deed), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  ASSERT_TRUE(runner->lay_out(shapes(), 2).ok());
  fill_inputs(runner->slot(1), 1);
  runner->poison(1, 42);
  const double timeout_s = attack.verdict == Verdict::timed_out ? kShort_s : kPatience_s;
  const auto time = runner->call(planned.value->plan_id, 1, timeout_s);
  RunnerFailure failure = time.failure;
  if (time.ok()) {
    const auto found = runner->inspect(1);
    ASSERT_TRUE(found) << "the call was fine";
    failure = *found;
  } else {
    EXPECT_FALSE(runner->call(planned.value->plan_id, 1, kPatience_s).ok())
        << "a failed runner stays failed";
  }
  EXPECT_EQ(failure.verdict, attack.verdict) << failure.sentence;
  EXPECT_THAT(failure.sentence, HasSubstr(attack.words));
}

constexpr Verdict kBroke = Verdict::broke_sandbox;
const Attack kCallAttacks[] = {
    {"hang", Deed::hang, Verdict::timed_out, "did not end within 0.2 s, in call 1 (slot 1)"},
    {"null_write", Deed::null_write, Verdict::crashed, "wrote through a null pointer"},
    {"wild_read", Deed::wild_read, Verdict::crashed, "read at address 0x10000000000"},
    {"stack_overflow", Deed::stack_overflow, Verdict::crashed, "which it does not own"},
    {"illegal_instruction", Deed::illegal_instruction, Verdict::crashed, "this processor lacks"},
    {"trap", Deed::trap, Verdict::crashed, "ran into a trap"},
    {"division_by_zero", Deed::division_by_zero, Verdict::crashed, "divided an integer by zero"},
    {"abort_call", Deed::abort_call, Verdict::crashed, "aborted"},
    {"throw_exception", Deed::throw_exception, Verdict::crashed, "it printed: no convergence"},
    {"write_input", Deed::write_input, Verdict::mutated_input,
     "wrote to byte 12 of input A (slot 1)"},
    {"write_past_input", Deed::write_past_input, Verdict::wrote_outside,
     "at byte 0 past the end of input A"},
    {"write_past_output", Deed::write_past_output, Verdict::wrote_outside,
     "at byte 0 past the end of output H"},
    {"write_before_output", Deed::write_before_output, Verdict::wrote_outside,
     "bytes before the start of output H"},
    {"write_far_past_output", Deed::write_far_past_output, Verdict::wrote_outside, "wrote"},
    {"read_far_past_input", Deed::read_far_past_input, Verdict::crashed, "read"},
    {"write_past_scratch", Deed::write_past_scratch, Verdict::wrote_outside,
     "outside its scratch memory"},
    {"punch_output", Deed::punch_output, Verdict::wrote_outside, "before the start of output"},
    {"exit_zero", Deed::exit_zero, Verdict::crashed, "exited early with code 0"},
    {"memory_bomb", Deed::memory_bomb, Verdict::over_memory, "std::bad_alloc"},
    {"start_process", Deed::start_process, kBroke, "clone"},
    {"start_thread", Deed::start_thread, kBroke, "as starting a thread does"},
    {"open_socket", Deed::open_socket, kBroke, "socket (system call 41)"},
    {"open_for_writing", Deed::open_for_writing, kBroke, "openat"},
    {"kill_parent", Deed::kill_parent, kBroke, "called kill"},
    {"stop_parent", Deed::stop_parent, kBroke, "tgkill"},
    {"trace_parent", Deed::trace_parent, kBroke, "ptrace"},
    {"read_parent_memory", Deed::read_parent_memory, kBroke, "process_vm_readv"},
    {"interval_timer", Deed::interval_timer, kBroke, "setitimer"},
    {"posix_timer", Deed::posix_timer, kBroke, "timer_create"},
    {"alarm_clock", Deed::alarm_clock, kBroke, "alarm"},
    {"run_program", Deed::run_program, kBroke, "execve"},
    {"change_affinity", Deed::change_affinity, kBroke, "sched_setaffinity"},
    {"anonymous_file", Deed::anonymous_file, kBroke, "memfd_create"},
    {"own_filter", Deed::own_filter, kBroke, "seccomp"},
    {"own_signal_handler", Deed::own_signal_handler, kBroke, "rt_sigaction"},
    {"executable_memory", Deed::executable_memory, kBroke, "mmap"},
    {"io_ring", Deed::io_ring, kBroke, "io_uring_setup"},
    {"other_architecture", Deed::other_architecture, kBroke, "the sandbox forbids"},
    {"stop_itself", Deed::stop_itself, kBroke, "stopped its own process before the work was done"},
};
INSTANTIATE_TEST_SUITE_P(All, CallAttack, ::testing::ValuesIn(kCallAttacks), name_of);

class PlanAttack : public ::testing::TestWithParam<Attack> {};

TEST_P(PlanAttack, IsStoppedAndNamed) {
  const Attack& attack = GetParam();
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  if (attack.verdict == Verdict::broke_sandbox &&
      runner->sandbox() < SandboxLevel::landlock_seccomp)
    GTEST_SKIP() << "this machine has no system call filter";
  const double timeout_s = attack.verdict == Verdict::timed_out ? kShort_s : kPatience_s;
  const auto planned = runner->plan(0, shapes(), axes(attack.deed), timeout_s);
  ASSERT_FALSE(planned.ok());
  EXPECT_EQ(planned.failure.verdict, attack.verdict) << planned.failure.sentence;
  EXPECT_THAT(planned.failure.sentence, HasSubstr(attack.words));
}

const Attack kPlanAttacks[] = {
    {"counter", Deed::plan_with_counter, Verdict::bad_plan,
     "the scratch bytes are 4160, then 4224"},
    {"unknown_tensor", Deed::plan_with_unknown_tensor, Verdict::bad_plan,
     "input \"B\" of float, which does not exist"},
    {"hang", Deed::plan_hangs, Verdict::timed_out, "in the plan function of row 0"},
    {"huge_scratch", Deed::plan_wants_huge_scratch, Verdict::over_memory,
     "bytes of scratch; the limit is"},
    {"memory_limit", Deed::plan_over_memory_limit, Verdict::over_memory,
     "the memory limit counts too"},
    {"not_supported", Deed::plan_not_supported, Verdict::not_supported, "only for n above 10000"},
    {"starts_process", Deed::plan_starts_process, kBroke, "in the plan function"},
};
INSTANTIATE_TEST_SUITE_P(All, PlanAttack, ::testing::ValuesIn(kPlanAttacks), name_of);

RunnerFailure failure_of_loading(const RunnerOptions& options) {
  auto started = Runner::start(options);
  EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().text());
  if (!started.ok()) return {};
  EXPECT_FALSE(started->ok());
  return started->failure;
}

TEST(LoadAttack, ExitInAConstructor) {
  const RunnerFailure failure = failure_of_loading(options_for("load_exits"));
  EXPECT_EQ(failure.verdict, Verdict::crashed);
  EXPECT_THAT(failure.sentence, HasSubstr("exited early with code 0, while loading the candidate"));
}
TEST(LoadAttack, ThreadInAConstructor) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP();
  const RunnerFailure failure = failure_of_loading(options_for("load_starts_thread"));
  EXPECT_EQ(failure.verdict, Verdict::broke_sandbox);
  EXPECT_THAT(failure.sentence, HasSubstr("as starting a thread does"));
}
TEST(LoadAttack, TimerInAConstructor) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP();
  const RunnerFailure failure = failure_of_loading(options_for("load_starts_timer"));
  EXPECT_EQ(failure.verdict, Verdict::broke_sandbox);
  EXPECT_THAT(failure.sentence, HasSubstr("setitimer"));
}
TEST(LoadAttack, HangInAConstructor) {
  RunnerOptions options = options_for("load_hangs");
  options.load_timeout_s = 2;
  const RunnerFailure failure = failure_of_loading(options);
  EXPECT_EQ(failure.verdict, Verdict::timed_out);
  EXPECT_THAT(failure.sentence, HasSubstr("did not end within 2 s, while loading"));
}
TEST(LoadAttack, StopInAConstructor) {
  const RunnerFailure failure = failure_of_loading(options_for("load_stops_itself"));
  EXPECT_EQ(failure.verdict, Verdict::broke_sandbox);
  EXPECT_THAT(failure.sentence, HasSubstr("stopped its own process"));
}
// The filter that comes after loading is the runner's or none: no other one is let in, and the
// memory from which the kernel takes it cannot be touched.
TEST(LoadAttack, AFilterOfItsOwnIsRefused) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP();
  const RunnerFailure failure = failure_of_loading(options_for("load_installs_filter"));
  EXPECT_EQ(failure.verdict, Verdict::broke_sandbox);
  EXPECT_THAT(failure.sentence, HasSubstr("seccomp"));
}
TEST(LoadAttack, TheRunnersFilterIsOutOfReach) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP();
  const std::pair<const char*, const char*> deeds[] = {{"load_unlocks_filter", "mprotect"},
                                                       {"load_replaces_filter", "mmap"},
                                                       {"load_moves_filter", "mremap"}};
  for (const auto& [candidate, call] : deeds) {
    const RunnerFailure failure = failure_of_loading(options_for(candidate));
    EXPECT_EQ(failure.verdict, Verdict::broke_sandbox) << candidate;
    EXPECT_THAT(failure.sentence, HasSubstr(call)) << candidate;
  }
}
TEST(LoadAttack, AnUnresolvedSymbolIsARefusedObject) {
  const RunnerFailure failure = failure_of_loading(options_for("load_lacks_symbol"));
  EXPECT_EQ(failure.verdict, Verdict::refused_object);
  EXPECT_THAT(failure.sentence, HasSubstr("kbeam_no_such_function"));
}
TEST(LoadAttack, AnObjectWithoutAPlanIsRefused) {
  const RunnerFailure failure = failure_of_loading(options_for("load_lacks_plan"));
  EXPECT_EQ(failure.verdict, Verdict::refused_object);
  EXPECT_THAT(failure.sentence, HasSubstr("no KBEAM_PLAN"));
}
TEST(LoadAttack, FilesOfTheMachineCannotBeReadWhileLoading) {
  if (best_sandbox() < SandboxLevel::landlock_seccomp) GTEST_SKIP();
  const auto runner = start_runner(options_for("load_reads_files"));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), {}, kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  EXPECT_EQ(planned.value->notes.at("readable"), "0");
}

// Runs one deed that ends regularly and gives the runner back with slot 0 used.
std::unique_ptr<Runner> run_deed(Deed deed, const RunnerOptions& options = options_for("deeds")) {
  auto runner = start_runner(options);
  if (!runner) return nullptr;
  const auto planned = runner->plan(0, shapes(), axes(deed), kPatience_s);
  EXPECT_TRUE(planned.ok()) << planned.failure.sentence;
  EXPECT_TRUE(runner->lay_out(shapes(), 1).ok());
  fill_inputs(runner->slot(0), 5);
  runner->poison(0, 9);
  const auto time = runner->call(planned.value->plan_id, 0, kPatience_s);
  EXPECT_TRUE(time.ok()) << time.failure.sentence;
  return runner;
}

TEST(HarmlessAttack, InputsCannotBeMadeWritable) {
  const auto runner = run_deed(Deed::make_input_writable);
  ASSERT_TRUE(runner);
  EXPECT_EQ(runner->slot(0).inputs[0].f32()[0], 5.f);
}
TEST(HarmlessAttack, FilesOfTheMachineCannotBeRead) {
  if (best_sandbox() == SandboxLevel::none) GTEST_SKIP() << "nothing is filtered here";
  const auto runner = run_deed(Deed::read_files);
  ASSERT_TRUE(runner);
  EXPECT_EQ(runner->slot(0).outputs[0].f32()[0], 0.f);
}
TEST(HarmlessAttack, OnlyABaselineMayLookAtTheProcessor) {
  RunnerOptions options = options_for("deeds");
  const auto candidate = run_deed(Deed::read_processor_description, options);
  options.may_use_libraries = true;
  const auto baseline = run_deed(Deed::read_processor_description, options);
  ASSERT_TRUE(candidate && baseline);
  EXPECT_EQ(baseline->slot(0).outputs[0].f32()[0], 1.f);
  if (best_sandbox() >= SandboxLevel::landlock_seccomp) {
    EXPECT_EQ(candidate->slot(0).outputs[0].f32()[0], 0.f);
  }
}
TEST(HarmlessAttack, AFloodOfOutputNeitherBlocksNorGrows) {
  const auto runner = run_deed(Deed::flood_output);
  ASSERT_TRUE(runner);
  testing::expect_right(runner->slot(0), 5);
  EXPECT_TRUE(runner->empty_call().ok());
}

}  // namespace
}  // namespace kbeam
