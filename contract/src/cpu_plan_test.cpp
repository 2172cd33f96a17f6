// Recording and running plans on teams of several sizes; every mistake that a plan can make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/cpu_plan.h>
#include <kbeam/plan.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace kbeam {
namespace {

using ::testing::HasSubstr;

PlanShape vector_shape(std::int64_t length) {
  PlanShape shape;
  shape.axes["n"] = length;
  shape.tensors.push_back({"A", KBEAM_INPUT, KBEAM_F32, 1, {length, 1, 1, 1}, {1, 0, 0, 0}});
  shape.tensors.push_back({"B", KBEAM_OUTPUT, KBEAM_F32, 1, {length, 1, 1, 1}, {1, 0, 0, 0}});
  return shape;
}

void double_range(Range range, const float* a, float* b) {
  for (std::int64_t i = range.begin; i < range.end; ++i) b[i] = 2 * a[i];
}
void add_one(Range range, float* b) {
  for (std::int64_t i = range.begin; i < range.end; ++i) b[i] += 1;
}
void mark_worker(Range range, std::int32_t* marks, float*) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(marks) % 64, 0u);
  for (std::int64_t i = range.begin; i < range.end; ++i) marks[0] += 1;
}
void collect(const std::int32_t* marks, std::int64_t stride, int workers, float* b) {
  for (int worker = 0; worker < workers; ++worker)
    b[0] += static_cast<float>(marks[worker * stride]);
}
void clear(std::int32_t* marks, std::int64_t count) {
  std::fill_n(marks, count, 0);
}
void count_range(Range range, std::int64_t grain, float* b) {
  EXPECT_LE(range.end - range.begin, grain);
  for (std::int64_t i = range.begin; i < range.end; ++i) b[i] += 1;
}

void chain_plan(const kbeam_host* host) {
  Plan plan(host);
  Args args(host);
  auto a = args.input<float>("A");
  auto b = args.output<float>("B");
  plan.parallel_for(a.dim(0), 0, double_range, a, b);
  for (int step = 0; step < 50; ++step)
    plan.parallel_for(a.dim(0), step % 3 == 0 ? 0 : 7, add_one, b);
}

std::vector<float> run_on(const CpuPlan& plan, std::int64_t length, int workers) {
  std::vector<float> a(static_cast<std::size_t>(length)), b(a.size(), 0);
  std::iota(a.begin(), a.end(), 0.f);
  std::vector<std::byte> scratch(static_cast<std::size_t>(plan.scratch_bytes()) + 64);
  void* aligned = scratch.data();
  std::size_t room = scratch.size();
  std::align(64, static_cast<std::size_t>(plan.scratch_bytes()), aligned, room);
  WorkerTeam team(workers);
  void* tensors[] = {a.data(), b.data()};
  plan.execute(tensors, aligned, team);
  return b;
}

class CpuPlanWorkers : public ::testing::TestWithParam<int> {};

TEST_P(CpuPlanWorkers, RunsStepsInOrderOnEveryItemOnce) {
  const int workers = GetParam();
  const std::int64_t length = 1001;
  const CpuPlan plan = CpuPlan::record(chain_plan, vector_shape(length), workers);
  ASSERT_EQ(plan.error(), "");
  EXPECT_EQ(plan.steps(), 51);
  const std::vector<float> b = run_on(plan, length, workers);
  for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b[i], 2 * static_cast<float>(i) + 50) << i;
}

TEST_P(CpuPlanWorkers, RepeatedCallsOfOneTeamAgree) {
  const std::int64_t length = 64;
  const CpuPlan plan = CpuPlan::record(chain_plan, vector_shape(length), GetParam());
  WorkerTeam team(GetParam());
  std::vector<float> a(64, 3.f), b(64);
  void* tensors[] = {a.data(), b.data()};
  for (int call = 0; call < 40; ++call) {
    std::fill(b.begin(), b.end(), -1.f);
    plan.execute(tensors, nullptr, team);
    ASSERT_EQ(b, std::vector<float>(64, 56.f)) << call;
  }
}

TEST_P(CpuPlanWorkers, GrainIsTheMostItemsOfOneRange) {
  const auto describe = [](const kbeam_host* host) {
    Plan plan(host);
    auto b = Args(host).output<float>("B");
    plan.parallel_for(b.dim(0), 8, count_range, std::int64_t{8}, b);
  };
  const CpuPlan plan = CpuPlan::record(describe, vector_shape(100), GetParam());
  EXPECT_EQ(run_on(plan, 100, GetParam()), std::vector<float>(100, 1.f));
}

TEST_P(CpuPlanWorkers, WorkersHaveTheirOwnScratch) {
  const auto describe = [](const kbeam_host* host) {
    Plan plan(host);
    auto b = Args(host).output<float>("B");
    plan.scratch<float>(3);  // makes the next offset one that needs rounding up
    auto marks = plan.worker_scratch<std::int32_t>(1);
    const Scratch<std::int32_t> whole{marks.id};
    const std::int64_t stride = marks.stride_bytes / 4;
    plan.call(clear, whole, stride * plan.workers());
    plan.parallel_for(b.dim(0), 3, mark_worker, marks, b);
    plan.call(collect, whole, stride, plan.workers(), b);
  };
  const CpuPlan plan = CpuPlan::record(describe, vector_shape(100), GetParam());
  ASSERT_EQ(plan.error(), "");
  EXPECT_GE(plan.scratch_bytes(), 64 + 128 * GetParam());
  EXPECT_EQ(run_on(plan, 100, GetParam())[0], 100.f);
}

INSTANTIATE_TEST_SUITE_P(Teams, CpuPlanWorkers, ::testing::Values(1, 2, 3, 8));

TEST(CpuPlan, EqualSharesAreContiguousAndOneAWorker) {
  static std::atomic<int> ranges;
  static std::atomic<std::int64_t> items;
  ranges = 0;
  items = 0;
  const auto describe = [](const kbeam_host* host) {
    void (*function)(Range, float*) = [](Range range, float*) {
      ++ranges;
      items += range.end - range.begin;
    };
    Plan(host).parallel_for(10, 0, function, Args(host).output<float>("B"));
  };
  run_on(CpuPlan::record(describe, vector_shape(10), 3), 10, 3);
  EXPECT_EQ(ranges, 3);
  EXPECT_EQ(items, 10);
}

TEST(CpuPlan, ASmallerTeamStillDoesAllTheWork) {
  const CpuPlan plan = CpuPlan::record(chain_plan, vector_shape(64), 4);
  EXPECT_EQ(run_on(plan, 64, 2)[5], 60.f);
  EXPECT_EQ(run_on(plan, 64, 8)[5], 60.f);
}

void scale(Range, float*, double, int) {}

// Says something else each time it is called.
void drifting_plan(const kbeam_host* host) {
  static int calls = 0;
  Plan(host).parallel_for(4, 0, scale, Args(host).output<float>("B"), 1.0, ++calls);
}
void growing_plan(const kbeam_host* host) {
  static int calls = 0;
  Plan(host).parallel_for(++calls, 0, add_one, Args(host).output<float>("B"));
}
void steady_plan(const kbeam_host* host) {
  Plan plan(host);
  plan.note("words", std::string(200, 'x'));
  for (int step = 0; step < 20; ++step)
    plan.parallel_for(4, 0, scale, Args(host).output<float>("B"), 1.0, step);
}

std::string difference_of(kbeam_plan_function* describe) {
  const CpuPlan first = CpuPlan::record(describe, vector_shape(4), 1);
  return first.difference(CpuPlan::record(describe, vector_shape(4), 1));
}

TEST(CpuPlanDifference, OfASteadyPlanIsEmptyAlthoughArgumentsHavePadding) {
  EXPECT_EQ(difference_of(steady_plan), "");
  EXPECT_EQ(difference_of(chain_plan), "");
}
TEST(CpuPlanDifference, NamesTheStepAndWhatChanged) {
  EXPECT_EQ(difference_of(drifting_plan), "step 0 calls another function or has other arguments");
  EXPECT_EQ(difference_of(growing_plan), "step 0 has count 1, then 2");
}

std::string error_of(kbeam_plan_function* describe) {
  return CpuPlan::record(describe, vector_shape(4), 1).error();
}

TEST(CpuPlanErrors, UnknownTensorNamesWhatExists) {
  const std::string error = error_of([](const kbeam_host* host) { Args(host).input<float>("X"); });
  EXPECT_THAT(error, HasSubstr("input \"X\" of float, which does not exist"));
  EXPECT_THAT(error, HasSubstr("input A (float), output B (float)"));
}

TEST(CpuPlanErrors, WrongRoleAndTypeAreBothReported) {
  const std::string error = error_of([](const kbeam_host* host) {
    Args(host).output<float>("A");
    Args(host).output<double>("B");
  });
  EXPECT_THAT(error, HasSubstr("output \"A\" of float, but it is an input of float"));
  EXPECT_THAT(error, HasSubstr("output \"B\" of double, but it is an output of float"));
}

TEST(CpuPlanErrors, UnknownAxisNamesWhatExists) {
  EXPECT_THAT(error_of([](const kbeam_host* host) { Args(host).axis("m"); }),
              HasSubstr("axis \"m\", which does not exist; the problem has: n"));
}

TEST(CpuPlanErrors, NegativeOrHugeScratchIsRefused) {
  EXPECT_THAT(error_of([](const kbeam_host* host) { Plan(host).scratch<float>(-1); }),
              HasSubstr("scratch of -4 bytes"));
  EXPECT_THAT(error_of([](const kbeam_host* host) { Plan(host).scratch<char>(INT64_MAX / 2); }),
              HasSubstr("scratch of"));
}

// Counts whose bytes would be 0, or few, if they wrapped around in 64 bits.
TEST(CpuPlanErrors, ScratchBeyond64BitsIsRefused) {
  constexpr std::int64_t kWraps = std::int64_t{1} << 62;
  static std::int64_t count;
  for (const std::int64_t one : {kWraps, kWraps + 1, INT64_MAX, 1 - kWraps, INT64_MIN}) {
    count = one;
    EXPECT_THAT(error_of([](const kbeam_host* host) { Plan(host).scratch<float>(count); }),
                HasSubstr("below 64 TiB together"))
        << one;
    EXPECT_THAT(error_of([](const kbeam_host* host) { Plan(host).worker_scratch<float>(count); }),
                HasSubstr("below 64 TiB together"))
        << one;
  }
  EXPECT_THAT(error_of([](const kbeam_host* host) { Plan(host).worker_scratch<char>(-1); }),
              HasSubstr("scratch of -1 bytes"));
}

TEST(CpuPlanErrors, NegativeCountIsRefused) {
  EXPECT_THAT(error_of([](const kbeam_host* host) {
                Plan(host).parallel_for(-5, 1, add_one, Args(host).output<float>("B"));
              }),
              HasSubstr("count -5"));
}

TEST(CpuPlanErrors, TooManyStepsAreRefused) {
  EXPECT_THAT(error_of([](const kbeam_host* host) {
                auto b = Args(host).output<float>("B");
                for (int step = 0; step <= 100'000; ++step)
                  Plan(host).parallel_for(1, 1, add_one, b);
              }),
              HasSubstr("more than 100000 steps"));
}

TEST(CpuPlanErrors, TooManyBuffersAreRefused) {
  EXPECT_THAT(error_of([](const kbeam_host* host) {
                for (int index = 0; index < 300; ++index) Plan(host).scratch<float>(1);
              }),
              HasSubstr("256 tensors and scratch buffers"));
}

TEST(CpuPlanErrors, AnEmptyPlanIsRefused) {
  EXPECT_EQ(error_of([](const kbeam_host*) {}), "the plan has no steps");
}

TEST(CpuPlanErrors, AnExceptionBecomesAnError) {
  EXPECT_THAT(error_of([](const kbeam_host*) { throw std::runtime_error("no room"); }),
              HasSubstr("threw: no room"));
}

TEST(CpuPlan, NotSupportedIsToldApartFromErrors) {
  const CpuPlan plan = CpuPlan::record(
      [](const kbeam_host* host) { Plan(host).not_supported("needs n >= 8"); }, vector_shape(4), 1);
  EXPECT_TRUE(plan.not_supported());
  EXPECT_EQ(plan.error(), "needs n >= 8");
}

TEST(CpuPlan, NotesAreKeptAndBounded) {
  const CpuPlan plan = CpuPlan::record(
      [](const kbeam_host* host) {
        Plan(host).note("core", std::string(5000, 'x'));
        for (int index = 0; index < 500; ++index)
          Plan(host).note(std::to_string(index).c_str(), "y");
      },
      vector_shape(4), 1);
  EXPECT_EQ(plan.notes().size(), 64u);
  EXPECT_EQ(plan.notes().at("core").size(), 1024u);
}

}  // namespace
}  // namespace kbeam
