// What sanitizers print, as verdicts. Runs of real builds are in session/cpu_gates_test.cpp.
#include "target/cpu/watched_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

using ::testing::HasSubstr;

TEST(ExplainFinding, NothingPrintedIsNoFinding) {
  EXPECT_FALSE(explain_finding(""));
  EXPECT_FALSE(explain_finding("a candidate may print: ERROR, race, READ of size 4\n"));
}

TEST(ExplainFinding, AReadOutsideNamesItsPlaceInTheSource) {
  const auto finding = explain_finding(
      "=================================================================\n"
      "==9==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6080 at pc 0x7f bp 0x7 sp "
      "0x7\n"
      "READ of size 4 at 0x6080 thread T0\n"
      "    #0 0x7ffff3d012d9 in __interceptor_memcpy (/usr/lib/libasan.so.8+0x2d9)\n"
      "    #1 0x7ffff3d012d9 in scale /tmp/cache/candidate.cpp:17\n"
      "    #2 0x5555555578f1 in run_step watch_host.cpp:143\n");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, Verdict::read_outside);
  EXPECT_EQ(finding->sentence, "heap-buffer-overflow, READ of size 4 at candidate.cpp:17");
}

TEST(ExplainFinding, AWriteOutsideIsAWrite) {
  const auto finding = explain_finding(
      "==9==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x6080\n"
      "WRITE of size 32 at 0x6080 thread T1\n"
      "    #0 0x7ffff3d012d9 in scale candidate.cpp:4:9\n");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, Verdict::wrote_outside);
  EXPECT_EQ(finding->sentence, "stack-buffer-overflow, WRITE of size 32 at candidate.cpp:4:9");
}

TEST(ExplainFinding, AFaultIsACrash) {
  const auto finding =
      explain_finding("==9==ERROR: AddressSanitizer: SEGV on unknown address 0x0\n");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, Verdict::crashed);
}

TEST(ExplainFinding, UndefinedBehaviourIsQuoted) {
  const auto finding = explain_finding(
      "printed before\n/tmp/x/candidate.cpp:12:15: runtime error: shift exponent 40 is too large "
      "for "
      "32-bit type 'int'\nmore\n");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, Verdict::undefined_behaviour);
  EXPECT_EQ(
      finding->sentence,
      "candidate.cpp:12:15: runtime error: shift exponent 40 is too large for 32-bit type 'int'");
}

TEST(ExplainFinding, ADataRaceIsARace) {
  const auto finding = explain_finding(
      "==================\nWARNING: ThreadSanitizer: data race (pid=9)\n"
      "  Write of size 4 at 0x7b by thread T1:\n    #0 add candidate.cpp:21 (module.so+0x1)\n");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, Verdict::race);
  EXPECT_THAT(finding->sentence, HasSubstr("data race at candidate.cpp:21"));
}

}  // namespace
}  // namespace kbeam
