// problem.cu without a GPU: its kernels on the emulated device, against the CPU's checks and
// families.
#include "emulator/emulated_device.h"
// The emulated device comes before the kernels.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.cuh"
#include "emulator/emulated_plan.h"
#include "families.h"
#include "generate.cuh"
#include "problem/problem_library.h"
#include "qr_bench.h"

namespace kbeam::qr_test {
namespace {

std::string file_name(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);  // without a folder: all of it
}

EmulatedArgs args_of(const Case& the_case, CaseMemory& memory) {
  EmulatedArgs args;
  args.axes = the_case.axes;
  args.texts = {{"family", the_case.family}};
  args.memory.tensors = {{"A", memory.a(0)}, {"H", memory.h(0)}, {"tau", memory.tau(0)}};
  args.memory.dims = {{"A", {memory.batch(), memory.m(), memory.n()}},
                      {"H", {memory.batch(), memory.m(), memory.n()}},
                      {"tau", {memory.batch(), std::min(memory.m(), memory.n())}}};
  return args;
}

void generate_emulated(const Case& the_case, CaseMemory& memory, std::uint64_t seed) {
  EmulatedPlan plan;
  plan.control_values.seed = seed;
  batched_qr::describe_generation(plan, args_of(the_case, memory));
  ASSERT_EQ(plan.refusal, "");
}

// As the worker turns figures into a judgement.
Judgement inspect_emulated(const Case& the_case, CaseMemory& memory,
                           const Inspection& inspection = {}) {
  EmulatedPlan plan;
  plan.control_values.secret = inspection.secret;
  EmulatedArgs args = args_of(the_case, memory);
  args.texts["grade"] = inspection.grade;
  args.texts["depth"] = inspection.depth == CheckDepth::quick ? "quick" : "full";
  batched_qr::describe_check(plan, args);
  Judgement judgement;
  for (const EmulatedFigure& figure : plan.figures) {
    judgement.figure(figure.spec.name, figure.value(), figure.spec.limit, figure.spec.unit,
                     figure.where());
    if (!figure.passed() && figure.spec.not_finite)
      judgement.reject(CheckFailure::not_finite, figure.where(), figure.value(), 0, "");
  }
  return judgement;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const batched_qr::Family& family : batched_qr::kFamilies) names.emplace_back(family.name);
  return names;
}

const Problem& cuda_problem() {
  static const Problem seen = for_target(whole_problem(), "cuda");
  return seen;
}

TEST(CudaCases, TimesTheTwelveOfTheContest) {
  std::vector<std::string> timed;
  for (const Case& one : cuda_problem().timed_cases()) {
    EXPECT_EQ(one.axes.at("m"), one.axes.at("n"));
    EXPECT_EQ(one.pool, Pool::public_pool);
    timed.push_back(std::to_string(one.axes.at("batch")) + " x " +
                    std::to_string(one.axes.at("n")) + " " + one.family);
  }
  EXPECT_THAT(timed, testing::ElementsAre("20 x 32 dense_cond1", "40 x 176 dense_cond1",
                                          "40 x 352 dense_cond1", "640 x 512 dense_cond2",
                                          "60 x 1024 dense_cond2", "8 x 2048 dense_cond1",
                                          "2 x 4096 dense_cond1", "640 x 512 contest_mixed",
                                          "60 x 1024 contest_mixed", "640 x 512 zero_tail",
                                          "640 x 512 clustered_tail", "60 x 1024 near_rank"));
}

TEST(CudaCases, ShowsEveryFamilyAndKeepsAnotherCaseOfItPrivate) {
  std::map<std::string, std::set<Pool>> pools;
  for (const Case& one : cuda_problem().cases) pools[one.family].insert(one.pool);
  for (const std::string& family : family_names())
    EXPECT_THAT(pools[family], testing::IsSupersetOf({Pool::public_pool, Pool::private_pool}))
        << family;
}

TEST(CudaFamilies, AreThoseOfTheCpuInTheSameOrder) {
  const std::vector<std::string> names(std::begin(batched_qr::kKindNames),
                                       std::end(batched_qr::kKindNames));
  EXPECT_EQ(names, family_names());
  EXPECT_EQ(batched_qr::find_kind("contest_mixed"), batched_qr::Kind::contest_mixed);
  EXPECT_EQ(batched_qr::find_kind("nonsense"), batched_qr::Kind::none);
}

TEST(CudaFamilies, AShuffleIsAPermutationWithItsInverse) {
  for (const std::uint32_t count : {1u, 2u, 3u, 16u, 17u, 100u, 1000u, 4097u}) {
    const batched_qr::Shuffle shuffle{count * 77, count};
    std::set<std::uint32_t> seen;
    for (std::uint32_t x = 0; x < count; ++x) {
      seen.insert(shuffle.at(x));
      ASSERT_EQ(shuffle.place_of(shuffle.at(x)), x) << count;
    }
    ASSERT_EQ(seen.size(), count);
    EXPECT_LT(*seen.rbegin(), count);
  }
}

TEST(CudaFamilies, NormalNumbersAreNormal) {
  const Case one = make_case(2, 300, 401, "dense");
  CaseMemory memory(one);
  generate_emulated(one, memory, 3);
  double sum = 0, squares = 0, cubes = 0, fourths = 0, neighbours = 0;
  const auto count = static_cast<double>(memory.all_of_a().size());
  float before = 0;
  for (const float x : memory.all_of_a()) {
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourths += std::pow(x, 4);
    neighbours += x * before;
    before = x;
  }
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(cubes / count, 0, 5 * std::sqrt(15 / count));
  EXPECT_NEAR(fourths / count, 3, 5 * std::sqrt(96 / count));
  EXPECT_NEAR(neighbours / count, 0, 5 / std::sqrt(count));
}

class CudaFamily : public testing::TestWithParam<std::string> {};

TEST_P(CudaFamily, DependsOnTheSeedAndTheMatrixAlone) {
  const Case one = make_case(6, 37, 29, GetParam());
  CaseMemory memory(one), again(one), other(one);
  generate_emulated(one, memory, 8);
  generate_emulated(one, again, 8);
  generate_emulated(one, other, 9);
  const auto bytes = [](CaseMemory& of) {
    return std::string(reinterpret_cast<const char*>(of.a(0)), of.all_of_a().size() * 4);
  };
  EXPECT_EQ(bytes(memory), bytes(again));
  EXPECT_NE(bytes(memory), bytes(other));
  EXPECT_NE(bytes(memory).substr(0, 37 * 29 * 4), bytes(memory).substr(37 * 29 * 4, 37 * 29 * 4));
}

// An honest factorisation of these inputs passes both judges at both grades and depths.
TEST_P(CudaFamily, IsFactoredByAnHonestCandidate) {
  const Candidate candidate("known_good/double_inside");
  for (const auto& [batch, m, n] :
       {std::tuple{8, 33, 33}, {3, 70, 66}, {3, 20, 45}, {3, 45, 20}, {5, 1, 1}, {4, 4, 1}}) {
    const Case one = make_case(batch, m, n, GetParam());
    CaseMemory memory(one);
    generate_emulated(one, memory, 21);
    memory.run(candidate.plan());
    EXPECT_EQ(inspect(one, memory).verdict(), "accepted") << one.name;
    for (const char* grade : {"fp32", "contest"})
      for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
        const Judgement judgement = inspect_emulated(one, memory, {depth, grade});
        EXPECT_EQ(judgement.verdict(), "accepted")
            << one.name << ", " << grade << ": " << judgement.text();
      }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaFamily, testing::ValuesIn(family_names()), file_name);

double column_norm(CaseMemory& memory, std::int64_t matrix, std::int64_t j) {
  return batched_qr::norm2(memory.a(matrix) + j * memory.m(), memory.m());
}

TEST(CudaFamilies, KeepWhatTheirWordsPromise) {
  const std::int64_t m = 64, n = 48, batch = 24;
  const auto made = [&](const char* family) {
    const Case one = make_case(batch, m, n, family);
    CaseMemory memory(one);
    generate_emulated(one, memory, 5);
    return memory;
  };
  CaseMemory scaled = made("dense_cond2");
  EXPECT_NEAR(column_norm(scaled, 3, n - 1) / column_norm(scaled, 3, 0), 0.01, 0.005);
  CaseMemory tail = made("zero_tail");
  for (std::int64_t j = 0; j < n; ++j) EXPECT_EQ(column_norm(tail, 2, j) == 0, j >= 36) << j;
  CaseMemory clustered = made("clustered_tail");
  EXPECT_LT(column_norm(clustered, 1, 24) / column_norm(clustered, 1, 23), 1e-6);
  CaseMemory near = made("near_rank");
  for (std::int64_t i = 0; i < m; ++i) EXPECT_NEAR(near.a(4)[36 * m + i], near.a(4)[i], 1e-4);
  CaseMemory huge = made("huge");
  double most = 0, least = HUGE_VAL;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t j = 0; j < n; ++j) {
      most = std::max(most, column_norm(huge, b, j));
      least = std::min(least, column_norm(huge, b, j));
    }
  EXPECT_LE(most, FLT_MAX / 4);
  EXPECT_GT(most, 0.9999 * FLT_MAX / 4);
  EXPECT_NEAR(least / 1e-30, 1, 1e-5);
  CaseMemory orthogonal = made("orthogonal");
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t l = 0; l <= j; ++l) {
      double dot = 0;
      for (std::int64_t i = 0; i < m; ++i)
        dot += double(orthogonal.a(0)[j * m + i]) * orthogonal.a(0)[l * m + i];
      EXPECT_NEAR(dot, j == l, 1e-6);
    }
  CaseMemory subnormal = made("subnormal");
  for (const float x : subnormal.all_of_a()) EXPECT_LT(std::fabs(x), 1e-38);
  std::set<int> nans;
  CaseMemory one_nan = made("one_nan");
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t e = 0; e < m * n; ++e)
      if (std::isnan(one_nan.a(b)[e])) nans.insert(static_cast<int>(b));
  EXPECT_GE(nans.size(), 1u);
  EXPECT_LE(nans.size(), 10u);
}

TEST(CudaFamilies, TheContestMixtureHoldsAllSevenKinds) {
  const Case one = make_case(80, 40, 40, "contest_mixed");
  CaseMemory memory(one);
  generate_emulated(one, memory, 6);
  std::map<std::string, int> kinds;
  for (std::int64_t b = 0; b < 80; ++b) {
    const float* a = memory.a(b);
    const double last = column_norm(memory, b, 39);
    if (last == 0)
      ++kinds["zero_tail"];
    else if (a[39] == 0)
      ++kinds["band"];
    else if (last < 1e-6)
      ++kinds["clustered"];
    else if (batched_qr::norm2(a + 20, 20) < 0.05 * batched_qr::norm2(a, 20))
      ++kinds["row_graded"];
    else
      ++kinds["others"];
  }
  EXPECT_EQ(kinds.size(), 5u);
  for (const auto& [kind, count] : kinds) EXPECT_GE(count, 3) << kind;
}

double share_of_limit(const Judgement& judgement, const std::string& name) {
  for (const CheckFigure& figure : judgement.figures)
    if (figure.name == name) return figure.value / figure.limit;
  return NAN;
}

// The same verdict for the same reasons. The GPU measures each column by its own limit, so figures
// are compared as shares of it.
void expect_same_judgement(const Judgement& cpu, const Judgement& gpu, const std::string& what) {
  EXPECT_EQ(cpu.verdict(), gpu.verdict()) << what << "\n" << cpu.text() << "\n" << gpu.text();
  for (const CheckFigure& figure : cpu.figures) {
    const double share = figure.value / figure.limit;
    if (share > 0 && share <= 2) {
      EXPECT_NEAR(share_of_limit(gpu, figure.name), share, 1e-4) << what << ", " << figure.name;
    }
  }
}

// The untimed cases of the CPU with batches that an emulated device can afford, and one of every
// family of the contest.
std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (Case one : affordable_cases()) {
    const std::int64_t elements = one.axes.at("m") * one.axes.at("n");
    if (elements > 5000) continue;
    std::int64_t& batch = one.axes.at("batch");
    batch = std::min(batch, std::max<std::int64_t>(1, 3000 / elements));
    cases.push_back(one);
  }
  for (const char* family : {"dense_cond1", "dense_cond2", "zero_tail", "clustered_tail"})
    cases.push_back(make_case(2, 40, 40, family));
  cases.push_back(make_case(14, 32, 32, "contest_mixed"));
  return cases;
}

class SameVerdict : public testing::TestWithParam<std::string> {};

TEST_P(SameVerdict, AsTheCpusJudge) {
  const Candidate candidate(GetParam());
  if (!candidate.needs().empty()) GTEST_SKIP() << "needs the " << candidate.needs();
  for (const Case& one : small_cases()) {
    CaseMemory memory = run_case(one, candidate.plan());
    for (const char* grade : {"fp32", "contest"}) {
      const Judgement cpu = inspect(one, memory, {CheckDepth::full, grade});
      const Judgement gpu = inspect_emulated(one, memory, {CheckDepth::full, grade});
      const std::string what = GetParam() + " on " + one.name + ", " + grade;
      // Below FP32's limits the two round differently; a rejection ends the CPU's reckoning.
      if (cpu.rejection.empty())
        expect_same_judgement(cpu, gpu, what);
      else
        EXPECT_EQ(cpu.verdict(), gpu.verdict()) << what << "\n" << cpu.text() << "\n" << gpu.text();
      const Judgement quick = inspect_emulated(one, memory, {CheckDepth::quick, grade});
      if (cpu.verdict() == "accepted" || !cpu.rejection.empty() || cpu.worst_excess() > 8) {
        EXPECT_EQ(quick.verdict(), cpu.verdict()) << what << ", quick\n"
                                                  << quick.text() << "\n"
                                                  << cpu.text();
      }
    }
  }
}

std::vector<std::string> all_candidates() {
  std::vector<std::string> names = candidates_in("known_good");
  for (const std::string& name : candidates_in("known_wrong")) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Known, SameVerdict, testing::ValuesIn(all_candidates()), file_name);

// A .cu candidate of the folder, compiled for the emulated device.
class CudaCandidate {
 public:
  explicit CudaCandidate(const std::string& name) {
    const std::filesystem::path source =
        std::filesystem::path(KBEAM_PROBLEM_FOLDER) / (name + ".cu");
    std::ifstream lines(source);
    for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
      if (line.starts_with("// expect: ")) expects = line.substr(11);
      if (line.starts_with("// needs: ")) needs = line.substr(10);
    }
    std::string file = name + ".so";
    std::replace(file.begin(), file.end(), '/', '-');
    void* module =
        dlopen((std::filesystem::path(KBEAM_MODULE_FOLDER) / file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw std::runtime_error(dlerror());
    describe_ = reinterpret_cast<Describe*>(dlsym(module, "kbeam_emulated_plan"));
    if (describe_ == nullptr) throw std::runtime_error(file + " has no plan");
  }
  CaseMemory run(const Case& the_case) const {
    CaseMemory memory(the_case);
    generate_emulated(the_case, memory, 17);
    EmulatedPlan plan;
    describe_(plan, args_of(the_case, memory));
    return memory;
  }

  std::string expects;
  std::string needs;

 private:
  using Describe = void(EmulatedPlan&, const EmulatedArgs&);
  Describe* describe_ = nullptr;
};

std::vector<std::string> cuda_candidates_in(const std::string& subfolder) {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(KBEAM_PROBLEM_FOLDER) / subfolder))
    if (entry.path().extension() == ".cu")
      names.push_back(subfolder + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class HonestCudaCandidate : public testing::TestWithParam<std::string> {};

TEST_P(HonestCudaCandidate, IsAcceptedOnEverySmallCase) {
  const CudaCandidate candidate(GetParam());
  for (const Case& one : small_cases()) {
    CaseMemory memory = candidate.run(one);
    for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
      const Judgement judgement = inspect_emulated(one, memory, {depth});
      EXPECT_EQ(judgement.verdict(), "accepted") << one.name << ": " << judgement.text();
    }
  }
}
INSTANTIATE_TEST_SUITE_P(KnownGood, HonestCudaCandidate,
                         testing::ValuesIn(cuda_candidates_in("known_good_cuda")), file_name);

// The sketches that the GPU library ships, at shapes that take each of their ways.
struct SketchCase {
  const char* sketch;
  std::int64_t batch, m, n;
};
std::string sketch_case_name(const testing::TestParamInfo<SketchCase>& info) {
  const SketchCase& one = info.param;
  return std::string(one.sketch) + "_" + std::to_string(one.batch) + "x" + std::to_string(one.m) +
         "x" + std::to_string(one.n);
}
void expect_accepted(const SketchCase& shape, const std::string& family) {
  const CudaCandidate candidate(std::string("sketches/") + shape.sketch);
  const Case one = make_case(shape.batch, shape.m, shape.n, family);
  CaseMemory memory = candidate.run(one);
  const Judgement judgement = inspect(one, memory);
  EXPECT_EQ(judgement.verdict(), "accepted") << family << ": " << judgement.text();
}

class Sketch : public testing::TestWithParam<SketchCase> {};
TEST_P(Sketch, IsAcceptedOnADenseMatrix) {
  expect_accepted(GetParam(), "dense");
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, Sketch,
    testing::Values(SketchCase{"column_lanes", 5, 32, 32}, SketchCase{"column_lanes", 2, 7, 30},
                    SketchCase{"column_quads", 2, 75, 60}, SketchCase{"column_quads", 1, 260, 300},
                    SketchCase{"left_strips", 2, 99, 130}, SketchCase{"left_strips", 1, 512, 40},
                    SketchCase{"left_strips", 1, 518, 70}, SketchCase{"left_strips", 1, 520, 70},
                    SketchCase{"left_strips", 2, 200, 180}, SketchCase{"group_panels", 3, 1, 1},
                    SketchCase{"group_panels", 20, 37, 23}, SketchCase{"group_panels", 1, 64, 700},
                    SketchCase{"group_panels", 1, 1100, 290},
                    SketchCase{"group_panels", 1, 600, 290},
                    SketchCase{"group_panels", 1, 4098, 20},
                    SketchCase{"group_panels_tall", 1, 600, 290},
                    SketchCase{"group_panels_tall", 2, 1021, 140}),
    sketch_case_name);

class SketchOnFamilies : public testing::TestWithParam<SketchCase> {};
TEST_P(SketchOnFamilies, IsAcceptedOnEvery) {
  for (const std::string& family : family_names()) expect_accepted(GetParam(), family);
}
INSTANTIATE_TEST_SUITE_P(Shapes, SketchOnFamilies,
                         testing::Values(SketchCase{"column_lanes", 3, 30, 20},
                                         SketchCase{"column_quads", 2, 60, 50},
                                         SketchCase{"left_strips", 1, 70, 50},
                                         SketchCase{"group_panels", 1, 90, 40},
                                         SketchCase{"group_panels_tall", 1, 520, 20}),
                         sketch_case_name);

class WrongCudaCandidate : public testing::TestWithParam<std::string> {};

TEST_P(WrongCudaCandidate, IsRejectedForTheStatedReason) {
  const CudaCandidate candidate(GetParam());
  if (!candidate.needs.empty()) GTEST_SKIP() << "needs " << candidate.needs;
  int rejected = 0;
  for (const Case& one : small_cases()) {
    CaseMemory memory = candidate.run(one);
    const Judgement full = inspect_emulated(one, memory);
    const Judgement quick = inspect_emulated(one, memory, {CheckDepth::quick});
    if (full.verdict() == "accepted") {
      EXPECT_EQ(quick.verdict(), "accepted") << one.name << ": " << quick.text();
      continue;
    }
    ++rejected;
    EXPECT_EQ(full.verdict(), candidate.expects) << one.name << ": " << full.text();
    if (full.worst_excess() > 8) {
      EXPECT_EQ(quick.verdict(), full.verdict()) << one.name << ": " << quick.text();
    }
  }
  EXPECT_GT(rejected, 0) << "nothing caught it";
}
INSTANTIATE_TEST_SUITE_P(KnownWrong, WrongCudaCandidate,
                         testing::ValuesIn(cuda_candidates_in("known_wrong_cuda")), file_name);

TEST(CudaCheck, NamesTheMatrixAndTheColumn) {
  const Case one = make_case(5, 20, 12, "dense");
  CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
  memory.h(3)[7 * 20] *= 1.01f;
  for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
    const Judgement judgement = inspect_emulated(one, memory, {depth});
    EXPECT_EQ(judgement.verdict(), "wrong_value");
    const auto figure =
        std::find_if(judgement.figures.begin(), judgement.figures.end(),
                     [](const CheckFigure& f) { return f.name == "column_residual"; });
    ASSERT_NE(figure, judgement.figures.end());
    EXPECT_EQ(figure->where, "matrix 3, column 7");
  }
}

TEST(CudaCheck, IsNotFooledByAnythingNotFinite) {
  const Case one = make_case(3, 9, 9, "dense");
  for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
    for (const float value : {NAN, INFINITY})
      for (const std::int64_t place : {0, 8, 40, 80}) {
        CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
        memory.h(1)[place] = value;
        EXPECT_EQ(inspect_emulated(one, memory, {depth}).verdict(), "not_finite") << place;
      }
    CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
    memory.tau(2)[4] = NAN;
    EXPECT_EQ(inspect_emulated(one, memory, {depth}).verdict(), "not_finite");
  }
}

TEST(CudaCheck, AsksForFiniteResultsOnlyWhereTheyCanBe) {
  const Case one = make_case(1, 2, 2, "dense");
  CaseMemory memory(one);
  const float big = FLT_MAX / 2;
  std::copy_n(std::vector<float>{big, big, 0, big}.data(), 4, memory.a(0));
  for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
    std::fill_n(memory.h(0), 4, INFINITY);
    std::fill_n(memory.tau(0), 2, 0.0f);
    EXPECT_EQ(inspect_emulated(one, memory, {depth}).verdict(), "accepted");
    std::fill_n(memory.h(0), 4, 1.0f);
    EXPECT_EQ(inspect_emulated(one, memory, {depth}).verdict(), "wrong_value");
  }
}

TEST(CudaCheck, JudgesTheSmallestNumbersByTheRoundingFloor) {
  const Case one = make_case(1, 1, 2, "dense");
  CaseMemory memory(one);
  memory.a(0)[0] = memory.a(0)[1] = 100 * 0x1p-149f;
  memory.tau(0)[0] = 0;
  memory.h(0)[0] = 100 * 0x1p-149f;
  memory.h(0)[1] = 107 * 0x1p-149f;  // k = 2: eight are allowed, as the figure is FP32 rounded up
  EXPECT_EQ(inspect_emulated(one, memory).verdict(), "accepted");
  memory.h(0)[1] = 109 * 0x1p-149f;
  EXPECT_EQ(inspect_emulated(one, memory).verdict(), "wrong_value");
}

TEST(CudaCheck, JudgesOrthogonalityOnItsOwn) {
  const Case one = make_case(1, 20, 2, "dense");
  CaseMemory memory(one);
  problem_code().generate(CaseAdapter(one), 1, memory.inputs());
  std::copy_n(memory.a(0), 20, memory.a(0) + 20);
  memory.run(Candidate("known_good/left_looking").plan());
  ASSERT_NE(memory.tau(0)[1], 0);
  memory.tau(0)[1] = 1.5f;
  for (const CheckDepth depth : {CheckDepth::full, CheckDepth::quick}) {
    const Judgement judgement = inspect_emulated(one, memory, {depth});
    EXPECT_EQ(judgement.verdict(), "wrong_value") << judgement.text();
    EXPECT_GT(judgement.value("orthogonality"), 2);
    EXPECT_LT(judgement.value("column_residual"), 40);
  }
}

// Several blocks of reflectors, ragged at every side, one column off by what any low-precision
// product does.
TEST(CudaCheck, CatchesASingleBadColumnAcrossBlocks) {
  Random random(77);
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{200, 200}, {130, 70}, {70, 150}}) {
    const Case one = make_case(2, m, n, "dense");
    CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
    expect_same_judgement(inspect(one, memory), inspect_emulated(one, memory), one.name);
    EXPECT_EQ(inspect_emulated(one, memory, {CheckDepth::quick}).verdict(), "accepted");
    for (const std::int64_t column : {std::int64_t{0}, n / 2, n - 1}) {
      float* r = memory.h(1) + column * m;
      const std::vector<float> saved(r, r + m);
      const double norm = column_norm(memory, 1, column);
      r[0] += static_cast<float>(5100 * FLT_EPSILON * norm);
      expect_same_judgement(inspect(one, memory), inspect_emulated(one, memory), one.name);
      EXPECT_EQ(inspect_emulated(one, memory, {CheckDepth::quick, "fp32", random.bits()}).verdict(),
                "wrong_value");
      std::copy(saved.begin(), saved.end(), r);
    }
  }
}

// More than eight sums: the wide tile, and groups of 32 columns.
TEST(CudaCheck, LooksQuicklyAtWideMatrices) {
  const Case one = make_case(1, 40, 700, "dense");
  CaseMemory memory = run_case(one, Candidate("known_good/unblocked").plan());
  const Judgement cpu = inspect(one, memory, {CheckDepth::quick});
  const Judgement gpu = inspect_emulated(one, memory, {CheckDepth::quick});
  EXPECT_EQ(gpu.verdict(), "accepted") << gpu.text();
  EXPECT_NEAR(gpu.value("reflector_defect"), cpu.value("reflector_defect"), 1e-3);
  EXPECT_GT(gpu.value("projected_residual"), 0.2 * cpu.value("projected_residual"));
  EXPECT_LT(gpu.value("projected_residual"), 5 * cpu.value("projected_residual"));
  memory.h(0)[650 * 40 + 3] += 100;
  EXPECT_EQ(inspect_emulated(one, memory, {CheckDepth::quick}).verdict(), "wrong_value");
}

}  // namespace
}  // namespace kbeam::qr_test
