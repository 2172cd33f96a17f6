// Verdicts and sentences from made-up events and hints.
#include "target/cpu/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace kbeam {
namespace {

using ::testing::HasSubstr;

RunnerFailure explain_alone(ChildEvent event, control::Fault hint = {}, std::string printed = "") {
  auto memory = CallMemory::make(0, 0);
  return explain({event, hint, "in call 3", 1.5, std::move(printed)}, *memory);
}

TEST(Explain, AKillByTheWatchdogIsATimeoutAndOneFromOutsideIsOurs) {
  const RunnerFailure timeout = explain_alone({ChildState::killed, SIGKILL, true, 0});
  EXPECT_EQ(timeout.verdict, Verdict::timed_out);
  EXPECT_EQ(timeout.sentence, "did not end within 1.5 s, in call 3");
  EXPECT_EQ(explain_alone({ChildState::killed, SIGKILL, false, 0}).verdict, Verdict::engine_failed);
}

TEST(Explain, AStopThatCameTooLateIsATimeoutToo) {
  EXPECT_EQ(explain_alone({ChildState::stopped, SIGSTOP, true, 0}).verdict, Verdict::timed_out);
}

TEST(Explain, LimitsAndUnknownSignalsHaveTheirOwnWords) {
  EXPECT_EQ(explain_alone({ChildState::killed, SIGXCPU, false, 0}).verdict, Verdict::timed_out);
  EXPECT_EQ(explain_alone({ChildState::killed, SIGXFSZ, false, 0}).verdict, Verdict::broke_sandbox);
  EXPECT_THAT(explain_alone({ChildState::killed, SIGALRM, false, 0}).sentence,
              HasSubstr("SIGALRM"));
  EXPECT_THAT(explain_alone({ChildState::stopped, SIGTTOU, false, 0}).sentence,
              HasSubstr("SIGTTOU"));
}

TEST(Explain, ATrapIsToldFromAnInstructionThatIsNotThere) {
  control::Fault hint{};
  hint.signal = SIGILL;
  const ChildEvent killed{ChildState::killed, SIGILL, false, 0};
  EXPECT_THAT(explain_alone(killed, hint).sentence, HasSubstr("this processor lacks"));
  EXPECT_THAT(explain_alone(killed).sentence, HasSubstr("this processor lacks"));
  hint.is_trap = 1;
  EXPECT_THAT(explain_alone(killed, hint).sentence, HasSubstr("ran into a trap"));
  EXPECT_EQ(explain_alone(killed, hint).verdict, Verdict::crashed);
  hint.signal = SIGSEGV;
  EXPECT_THAT(explain_alone(killed, hint).sentence, HasSubstr("this processor lacks"));
}

TEST(Explain, AHintForAnotherSignalIsIgnored) {
  control::Fault hint{};
  hint.signal = SIGILL;
  hint.region = control::Region::scratch;
  const RunnerFailure failure = explain_alone({ChildState::killed, SIGSEGV, false, 0}, hint);
  EXPECT_EQ(failure.verdict, Verdict::crashed);
  EXPECT_EQ(failure.sentence, "used memory that it does not own, in call 3");
}

TEST(Explain, AHintNeverTurnsAKillIntoSomethingAccepted) {
  for (std::uint32_t region = 0; region < 8; ++region)
    for (const int signal : {SIGSEGV, SIGSYS, SIGABRT}) {
      control::Fault hint{};
      hint.signal = signal;
      hint.region = static_cast<control::Region>(region);
      hint.offset = -1;
      hint.system_call = -1;
      const RunnerFailure failure = explain_alone({ChildState::killed, signal, false, 0}, hint);
      EXPECT_EQ(blame_of(failure.verdict), Blame::candidate) << failure.sentence;
    }
}

TEST(Explain, ExhaustedMemoryIsToldFromACrash) {
  control::Fault hint{};
  hint.signal = SIGSEGV;
  hint.memory_exhausted = 1;
  EXPECT_EQ(explain_alone({ChildState::killed, SIGSEGV, false, 0}, hint).verdict,
            Verdict::over_memory);
}

TEST(Explain, WhatTheCandidatePrintedIsQuoted) {
  EXPECT_THAT(explain_alone({ChildState::exited, 3, false, 0}, {}, "bad luck").sentence,
              HasSubstr("exited early with code 3, in call 3; it printed: bad luck"));
}

TEST(ReadText, IsBoundedAndPrintable) {
  const char text[6] = {'a', '\n', 'b', '\x1b', 'c', 'd'};
  EXPECT_EQ(read_text(text, sizeof text), "a b cd");
}

}  // namespace
}  // namespace kbeam
