// problem.toml against the code, and the checks against candidates that must pass and candidates
// that must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/random.h>

#include <cfloat>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "problem/problem_library.h"
#include "qr_bench.h"

namespace kbeam::qr_test {
namespace {

std::string file_name(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}

TEST(ProblemFile, HasSixTimedSquareCasesOfAMillionElements) {
  std::vector<std::int64_t> sizes;
  for (const Case& one : problem().timed_cases()) {
    const std::int64_t n = one.axes.at("n");
    sizes.push_back(n);
    EXPECT_EQ(one.axes.at("m"), n);
    EXPECT_EQ(one.axes.at("batch"), std::max<std::int64_t>(3, 1000000 / (n * n)));
    EXPECT_EQ(one.family, "dense");
    EXPECT_EQ(one.pool, Pool::public_pool);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(16, 32, 64, 128, 256, 512));
}

TEST(ProblemFile, ShowsEveryFamilyAndKeepsAnotherCaseOfItPrivate) {
  std::map<std::string, std::set<Pool>> pools;
  for (const Case& one : problem().cases) pools[one.family].insert(one.pool);
  for (const FamilySpec& family : problem().families)
    EXPECT_THAT(pools[family.name], testing::IsSupersetOf({Pool::public_pool, Pool::private_pool}))
        << family.name;
}

TEST(Cost, IsLapacksCount) {
  const auto flops = [](std::int64_t m, std::int64_t n) {
    return problem_code().flops(CaseAdapter(make_case(3, m, n, "dense")));
  };
  EXPECT_NEAR(flops(512, 512), 3 * 4.0 / 3 * 512.0 * 512 * 512, 1e-3);
  EXPECT_EQ(flops(300, 5), flops(5, 300));
  EXPECT_NEAR(flops(300, 5), 3 * (2 * 300.0 * 25 - 2 * 125.0 / 3), 1e-6);
  EXPECT_EQ(problem_code().bytes(CaseAdapter(make_case(3, 7, 4, "dense"))), 3 * 4.0 * (2 * 28 + 4));
}

class HonestCandidate : public testing::TestWithParam<std::string> {};

TEST_P(HonestCandidate, IsAcceptedOnEveryCaseAtBothGradesAndDepths) {
  const Candidate candidate(GetParam());
  for (const Case& one : affordable_cases()) {
    CaseMemory memory = run_case(one, candidate.plan());
    for (const char* grade : {"fp32", "contest"})
      for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
        const Judgement judgement = inspect(one, memory, {depth, grade});
        EXPECT_EQ(judgement.verdict(), "accepted")
            << one.name << ", " << grade << ": " << judgement.text();
      }
  }
}

// Batches of the smallest matrices, where fixed rounding weighs most against limits that grow with
// size.
TEST_P(HonestCandidate, IsAcceptedOnManySmallMatrices) {
  const Candidate candidate(GetParam());
  for (const char* family : {"dense", "row_graded", "near_collinear", "subnormal", "huge"})
    for (const auto& [m, n] :
         {std::pair{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {8, 8}, {9, 2}, {2, 9}}) {
      const Case one = make_case(4000, m, n, family);
      CaseMemory memory = run_case(one, candidate.plan());
      const Judgement judgement = inspect(one, memory);
      EXPECT_EQ(judgement.verdict(), "accepted") << one.name << ": " << judgement.text();
    }
}

INSTANTIATE_TEST_SUITE_P(KnownGood, HonestCandidate, testing::ValuesIn(candidates_in("known_good")),
                         file_name);
INSTANTIATE_TEST_SUITE_P(Sketch, HonestCandidate, testing::ValuesIn(candidates_in("sketches")),
                         file_name);

// LAPACK is not finite at the edge of the range and loses accuracy below 1e-40: known, and not
// asked of it.
TEST(Lapack, IsAcceptedWhereItClaimsToWork) {
  const Candidate candidate("baselines/lapack");
  for (const Case& one : affordable_cases()) {
    if (one.family == "huge" || one.family == "subnormal" || one.family == "mixed") continue;
    CaseMemory memory = run_case(one, candidate.plan());
    const Judgement judgement = inspect(one, memory);
    EXPECT_EQ(judgement.verdict(), "accepted") << one.name << ": " << judgement.text();
  }
}

class WrongCandidate : public testing::TestWithParam<std::string> {};

TEST_P(WrongCandidate, IsRejectedForTheStatedReason) {
  const Candidate candidate(GetParam());
  if (!candidate.needs().empty())
    GTEST_SKIP() << "its damage is caught by the " << candidate.needs();
  int rejected = 0;
  for (const Case& one : affordable_cases()) {
    CaseMemory memory = run_case(one, candidate.plan());
    const Judgement full = inspect(one, memory);
    const Judgement quick = inspect(one, memory, {CheckDepth::quick});
    if (full.verdict() == "accepted") {
      EXPECT_EQ(quick.verdict(), "accepted") << one.name << ": " << quick.text();
      continue;
    }
    ++rejected;
    EXPECT_EQ(full.verdict(), candidate.expects()) << one.name << ": " << full.text();
    // The projection adds up to 64 columns, so an error just above the limit of one may hide in it.
    if (!full.rejection.empty() || full.worst_excess() > 8) {
      EXPECT_EQ(quick.verdict(), full.verdict())
          << one.name << ": " << quick.text() << " | " << full.text();
    }
  }
  EXPECT_GT(rejected, 0) << "nothing caught it";
}

INSTANTIATE_TEST_SUITE_P(KnownWrong, WrongCandidate,
                         testing::ValuesIn(candidates_in("known_wrong")), file_name);

double figure_of(const std::string& candidate, const Case& the_case, const char* figure,
                 CheckDepth depth = CheckDepth::full) {
  CaseMemory memory = run_case(the_case, Candidate(candidate).plan());
  return inspect(the_case, memory, {depth}).value(figure);
}

// The worst honest figure, the limit and the cheapest cheat, for every check, at every timed size.
TEST(Separation, IsTenfoldBetweenHonestAndCheating) {
  for (Case one : affordable_cases()) {
    if (!one.timed) continue;
    double honest = 0, honest_orthogonality = 0, honest_projection = 0;
    for (const std::string& name : candidates_in("known_good")) {
      honest = std::max(honest, figure_of(name, one, "column_residual"));
      honest_orthogonality = std::max(honest_orthogonality, figure_of(name, one, "orthogonality"));
      honest_projection = std::max(honest_projection,
                                   figure_of(name, one, "projected_residual", CheckDepth::quick));
    }
    double cheat = HUGE_VAL;
    for (const char* name : {"tf32_truncated_updates", "bf16_updates", "fp16_updates"})
      cheat =
          std::min(cheat, figure_of(std::string("known_wrong/") + name, one, "column_residual"));
    const double cheat_orthogonality = figure_of("known_wrong/tau_is_off", one, "orthogonality");
    const double limit = 10 * std::sqrt(double(one.axes.at("n")));
    EXPECT_GE(cheat / honest, 10) << one.name;
    EXPECT_GE(cheat_orthogonality / honest_orthogonality, 10) << one.name;
    EXPECT_LT(honest, limit) << one.name;
    EXPECT_GT(cheat, limit) << one.name;
    EXPECT_GE(5100 / honest_projection, 10) << one.name;
    std::printf(
        "%5s: column residual %5.1f | %5.1f | %7.0f eps, orthogonality %.2f | 2 | %5.0f n eps, "
        "projection %.1f\n",
        one.name.c_str(), honest, limit, cheat, honest_orthogonality, cheat_orthogonality,
        honest_projection);
  }
}

// One column of one matrix off by 5100 eps, in a random direction: the least that any low-precision
// product does.
TEST(QuickCheck, CatchesASingleBadColumn) {
  const Candidate candidate("known_good/unblocked");
  Random random(77);
  for (const std::int64_t n : {1, 2, 16, 37, 64, 128, 256, 512, 700}) {
    const Case one = make_case(std::max<std::int64_t>(1, 20000 / (n * n)), n, n, "dense");
    CaseMemory memory = run_case(one, candidate.plan());
    for (int trial = 0; trial < 40; ++trial) {
      const auto matrix = static_cast<std::int64_t>(random.below(memory.batch()));
      const auto column = static_cast<std::int64_t>(random.below(n));
      float* r = memory.h(matrix) + column * n;
      const std::vector<float> saved(r, r + n);
      std::vector<double> direction(column + 1);
      double norm = 0, length = 0;
      for (std::int64_t i = 0; i <= column; ++i) {
        direction[i] = random.normal();
        length += direction[i] * direction[i];
      }
      for (std::int64_t i = 0; i < n; ++i) norm += std::pow(memory.a(matrix)[column * n + i], 2);
      for (std::int64_t i = 0; i <= column; ++i)
        r[i] += static_cast<float>(5100 * FLT_EPSILON * std::sqrt(norm / length) * direction[i]);
      const Judgement quick = inspect(one, memory, {CheckDepth::quick, "fp32", random.bits()});
      EXPECT_EQ(quick.verdict(), "wrong_value")
          << n << ", column " << column << ": " << quick.text();
      std::copy(saved.begin(), saved.end(), r);
    }
    EXPECT_EQ(inspect(one, memory, {CheckDepth::quick}).verdict(), "accepted") << n;
  }
}

// The quick check may forgive an error of a few limits that sits in one column; the full one, which
// the first output of every case in every process gets, never does.
TEST(FullCheck, CatchesInOneColumnWhatIsJustBeyondTheLimit) {
  const Candidate candidate("known_good/unblocked");
  Random random(78);
  for (const std::int64_t n : {16, 64, 512}) {
    const Case one = make_case(1, n, n, "dense");
    CaseMemory memory = run_case(one, candidate.plan());
    const double limit = std::min(10 * std::sqrt(double(n)), 400.0);
    for (int trial = 0; trial < 5; ++trial) {
      const auto column = static_cast<std::int64_t>(random.below(n));
      float* r = memory.h(0) + column * n;
      const float saved = r[0];
      double norm = 0;
      for (std::int64_t i = 0; i < n; ++i) norm += std::pow(memory.a(0)[column * n + i], 2);
      r[0] += static_cast<float>(1.5 * limit * FLT_EPSILON * std::sqrt(norm));
      EXPECT_EQ(inspect(one, memory, {CheckDepth::full}).verdict(), "wrong_value")
          << n << ", column " << column;
      r[0] = saved;
    }
    EXPECT_EQ(inspect(one, memory, {CheckDepth::full}).verdict(), "accepted") << n;
  }
}

// A zero column has no weight in the sums, at the loose grade either.
TEST(QuickCheck, SeesWhatIsWrittenIntoAZeroColumn) {
  const Case one = make_case(2, 20, 20, "zero");
  CaseMemory memory = run_case(one, Candidate("known_wrong/writes_noise_into_zero_columns").plan());
  for (const char* grade : {"fp32", "contest"})
    EXPECT_EQ(inspect(one, memory, {CheckDepth::quick, grade}).verdict(), "wrong_value") << grade;
}

TEST(FullCheck, NamesTheMatrixAndTheColumn) {
  const Case one = make_case(5, 20, 12, "dense");
  CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
  memory.h(3)[7 * 20] *= 1.01f;
  const Judgement judgement = inspect(one, memory);
  EXPECT_EQ(judgement.verdict(), "wrong_value");
  EXPECT_EQ(judgement.figures[0].where, "matrix 3, column 7");
}

TEST(FullCheck, IsNotFooledByAnythingNotFinite) {
  const Case one = make_case(3, 9, 9, "dense");
  for (const float value : {NAN, INFINITY})
    for (const std::int64_t place : {0, 8, 40, 80}) {
      CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
      memory.h(1)[place] = value;
      EXPECT_EQ(inspect(one, memory).verdict(), "not_finite") << place;
      EXPECT_EQ(inspect(one, memory, {CheckDepth::quick}).verdict(), "not_finite") << place;
    }
  CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
  memory.tau(2)[4] = NAN;
  EXPECT_EQ(inspect(one, memory).verdict(), "not_finite");
}

TEST(FullCheck, SaysWhichTauLeavesItsRange) {
  const Case one = make_case(2, 8, 8, "dense");
  for (const float tau : {0.9f, 2.1f, -1.5f}) {
    CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
    memory.tau(1)[3] = tau;
    const Judgement judgement = inspect(one, memory);
    EXPECT_EQ(judgement.rejection, "wrong_value") << tau;
    EXPECT_THAT(judgement.sentence, testing::HasSubstr("matrix 1, tau 3")) << tau;
    EXPECT_THAT(judgement.sentence, testing::HasSubstr("between 1 and 2")) << tau;
  }
}

// The second of two equal columns leaves only rounding, so a wrong tau there shows in no column of
// R.
TEST(BothChecks, JudgeOrthogonalityOnItsOwn) {
  const Case one = make_case(1, 20, 2, "dense");
  CaseMemory memory(one);
  problem_code().generate(CaseAdapter(one), 1, memory.inputs());
  std::copy_n(memory.a(0), 20, memory.a(0) + 20);
  memory.run(Candidate("known_good/left_looking").plan());
  ASSERT_EQ(inspect(one, memory).verdict(), "accepted");
  ASSERT_NE(memory.tau(0)[1], 0);
  memory.tau(0)[1] = 1.5f;
  for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
    const Judgement judgement = inspect(one, memory, {depth});
    EXPECT_EQ(judgement.verdict(), "wrong_value") << judgement.text();
    EXPECT_TRUE(judgement.rejection.empty()) << judgement.text();
    EXPECT_GT(judgement.value("orthogonality"), 2);
    EXPECT_LT(judgement.value("column_residual"), 40);
  }
}

// Beyond FLT_MAX / 4 a correct factorisation may overflow, but finite results are judged like any
// others.
TEST(FullCheck, AsksForFiniteResultsOnlyWhereTheyCanBe) {
  const Case one = make_case(1, 2, 2, "dense");
  CaseMemory memory(one);
  const float big = FLT_MAX / 2;
  std::copy_n(std::vector<float>{big, big, 0, big}.data(), 4, memory.a(0));
  std::fill_n(memory.h(0), 4, INFINITY);
  std::fill_n(memory.tau(0), 2, 0.0f);
  EXPECT_EQ(inspect(one, memory).verdict(), "accepted");
  std::fill_n(memory.h(0), 4, 1.0f);
  EXPECT_EQ(inspect(one, memory).verdict(), "wrong_value");
}

// Rounds as honest FP32 does below the normal range, and is still held to 4 k 2^-149.
TEST(FullCheck, JudgesTheSmallestNumbersByTheRoundingFloor) {
  const Case one = make_case(1, 1, 2, "dense");
  CaseMemory memory(one);
  memory.a(0)[0] = memory.a(0)[1] = 100 * 0x1p-149f;
  memory.tau(0)[0] = 0;
  memory.h(0)[0] = 100 * 0x1p-149f;
  memory.h(0)[1] = 108 * 0x1p-149f;  // k = 2: eight away
  EXPECT_EQ(inspect(one, memory).verdict(), "accepted");
  memory.h(0)[1] = 109 * 0x1p-149f;
  EXPECT_EQ(inspect(one, memory).verdict(), "wrong_value");
}

}  // namespace
}  // namespace kbeam::qr_test
