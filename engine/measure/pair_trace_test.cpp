#include "measure/pair_trace.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

PairTrace small_trace() {
  return {.condition = "idle",
          .problem = "softmax",
          .case_name = "c64",
          .facts = {{"cpu", "a \"quoted\" name"}},
          .samples = {.candidate_ns = {1, 127, 128, 3'000'000'000},
                      .reference_ns = {0, 16383, 16384, 5},
                      .candidate_first = {1, 0, 0, 1},
                      .process = {0, 0, 1, 2}}};
}

TEST(PairTrace, ComesBackAsItWasWritten) {
  const PairTrace trace = small_trace();
  const Result<PairTrace> read = decode_trace(encode_trace(trace), "t");
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->condition, trace.condition);
  EXPECT_EQ(read->problem, trace.problem);
  EXPECT_EQ(read->case_name, trace.case_name);
  EXPECT_EQ(read->facts, trace.facts);
  EXPECT_EQ(read->samples.candidate_ns, trace.samples.candidate_ns);
  EXPECT_EQ(read->samples.reference_ns, trace.samples.reference_ns);
  EXPECT_EQ(read->samples.candidate_first, trace.samples.candidate_first);
  EXPECT_EQ(read->samples.process, trace.samples.process);
}

TEST(PairTrace, RefusesWhatIsCutShortOrLongerOrForeign) {
  const std::string bytes = encode_trace(small_trace());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(decode_trace(std::string_view(bytes).substr(0, length), "t").ok()) << length;
  EXPECT_FALSE(decode_trace(bytes + "x", "t").ok());
  EXPECT_FALSE(decode_trace("{\"format\": \"another\"}\n", "t").ok());
}

}  // namespace
}  // namespace kbeam
