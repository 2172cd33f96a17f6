// The shipped geqrf: judged by the problem's own check on all its cases; strides, aliasing,
// workspace, threads, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/cpu_plan.h>
#include <kbeam/problem.h>
#include <kbeam/random.h>
#include <kernelbeam/qr.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "problem/problem_file.h"
#include "problem/problem_library.h"
#include "qr/rows.h"

namespace kernelbeam {
namespace {

constexpr float kGap =
    -77.0f;  // what stands between strided matrices and must still stand there afterwards

std::vector<char> workspace_for(const Geqrf& call, Executor& executor) {
  std::size_t bytes = 0;
  EXPECT_EQ(geqrf_workspace_bytes(call, executor, &bytes), Status::ok);
  return std::vector<char>(bytes);
}

Status run(const Geqrf& call, Executor& executor) {
  std::vector<char> workspace = workspace_for(call, executor);
  return geqrf(call, workspace.data(), workspace.size(), executor);
}

std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  kbeam::Random random(seed);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

// A batch without gaps and its factors.
struct Batch {
  std::int64_t batch, m, n;
  std::vector<float> a;
  std::vector<float> h;
  std::vector<float> tau;

  Batch(std::int64_t matrices, std::int64_t rows, std::int64_t columns)
      : batch(matrices),
        m(rows),
        n(columns),
        a(random_values(batch * m * n, 5)),
        h(a.size(), kGap),
        tau(static_cast<std::size_t>(batch * std::min(m, n)), kGap) {}

  Geqrf call() {
    return {.batch = batch, .m = m, .n = n, .a = a.data(), .h = h.data(), .tau = tau.data()};
  }
};

// A row by itself, whatever the table would choose.
void run_row(const QrRow& row, Batch& batch) {
  const std::int64_t k = std::min(batch.m, batch.n);
  kbeam::PlanTensor a{.name = "A", .role = KBEAM_INPUT, .rank = 3};
  const std::int64_t dims[] = {batch.batch, batch.m, batch.n};
  const std::int64_t strides[] = {batch.m * batch.n, 1, batch.m};
  std::copy_n(dims, 3, a.dim);
  std::copy_n(strides, 3, a.stride);
  kbeam::PlanTensor h = a;
  h.name = "H";
  h.role = KBEAM_OUTPUT;
  kbeam::PlanTensor tau{.name = "tau", .role = KBEAM_OUTPUT, .rank = 2};
  tau.dim[0] = batch.batch;
  tau.dim[1] = k;
  tau.stride[0] = k;
  tau.stride[1] = 1;
  kbeam::PlanShape shape;
  shape.tensors = {a, h, tau};
  shape.axes = {{"batch", batch.batch}, {"m", batch.m}, {"n", batch.n}, {"k", k}};
  const kbeam::CpuPlan plan = kbeam::CpuPlan::record(row.plan, shape, 1);
  ASSERT_EQ(plan.error(), "");
  std::vector<char> scratch(static_cast<std::size_t>(plan.scratch_bytes()) + 64);
  void* aligned = scratch.data();
  std::size_t space = scratch.size();
  std::align(64, static_cast<std::size_t>(plan.scratch_bytes()), aligned, space);
  void* const tensors[] = {batch.a.data(), batch.h.data(), batch.tau.data()};
  kbeam::WorkerTeam team(1);
  plan.execute(tensors, aligned, team);
}

// ---- the problem's own check ----

struct Sink : kbeam::CheckSink {
  std::string failures;
  void figure(std::string_view name, double value, double limit, std::string_view unit,
              std::string_view where) override {
    if (value <= limit) return;
    failures += std::string(name) + " " + std::to_string(value) + " > " + std::to_string(limit) +
                " " + std::string(unit) + " at " + std::string(where) + "\n";
  }
  void reject(kbeam::CheckFailure, std::string_view where, double found, double expected,
              std::string_view sentence) override {
    failures += std::string(where) + ": " + std::to_string(found) + " instead of " +
                std::to_string(expected) + "; " + std::string(sentence) + "\n";
  }
};

kbeam::TensorView view_of(const kbeam::TensorShape& shape, std::vector<float>& data) {
  kbeam::TensorView view{
      .name = shape.name, .type = shape.type, .rank = static_cast<int>(shape.dims.size())};
  for (std::size_t axis = 0; axis < shape.dims.size(); ++axis) {
    view.dim[axis] = shape.dims[axis];
    view.stride[axis] = shape.strides[axis];
  }
  view.elements = shape.elements();
  view.data = data.data();
  return view;
}

class JudgedRows : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = kbeam::load_problem(KERNELBEAM_QR_PROBLEM);
    ASSERT_TRUE(loaded.ok());
    ASSERT_EQ(kbeam::render_mistakes(loaded->mistakes), "");
    problem_ = new kbeam::Problem(for_target(loaded->problem, "cpu"));
    auto library = kbeam::ProblemLibrary::load(KERNELBEAM_QR_PROBLEM_MODULE);
    ASSERT_TRUE(library.ok());
    library_ = library->release();
  }
  static void TearDownTestSuite() {
    delete library_;
    delete problem_;
  }

  template <typename Run>
  static void judge(const kbeam::Case& the_case, Run run_batch) {
    const kbeam::CaseAdapter view(the_case);
    const std::vector<kbeam::TensorShape> shapes = tensor_shapes(*problem_, the_case.axes);
    Batch batch(the_case.axes.at("batch"), the_case.axes.at("m"), the_case.axes.at("n"));
    const std::vector<kbeam::TensorView> inputs = {view_of(shapes[0], batch.a)};
    const std::vector<kbeam::TensorView> outputs = {view_of(shapes[1], batch.h),
                                                    view_of(shapes[2], batch.tau)};
    library_->code().generate(view, 17, inputs);
    run_batch(batch);
    Sink sink;
    library_->code().check(view, {kbeam::CheckDepth::full, "fp32", 18}, inputs, outputs, sink);
    EXPECT_EQ(sink.failures, "") << the_case.name;
  }

  static kbeam::Problem* problem_;
  static kbeam::ProblemLibrary* library_;
};
kbeam::Problem* JudgedRows::problem_ = nullptr;
kbeam::ProblemLibrary* JudgedRows::library_ = nullptr;

class Judged : public JudgedRows, public testing::WithParamInterface<int> {};

TEST_P(Judged, AcceptedOnEveryCaseOfTheProblem) {
  const auto executor = Executor::make(GetParam());
  ASSERT_NE(executor, nullptr);
  for (const kbeam::Case& the_case : problem_->cases)
    judge(the_case,
          [&executor](Batch& batch) { ASSERT_EQ(run(batch.call(), *executor), Status::ok); });
}
INSTANTIATE_TEST_SUITE_P(Threads, Judged, testing::Values(1, 2));

// Also the rows that a better one hides on this processor.
TEST_F(JudgedRows, EveryRowThatRunsHereIsAccepted) {
  for (const QrRow& row : qr_rows()) {
    if (!is_available(row.instruction_set)) continue;
    for (const kbeam::Case& the_case : problem_->cases) {
      const std::int64_t n = the_case.axes.at("n");
      if (n < row.least_columns || n > row.most_columns) continue;
      SCOPED_TRACE(std::string(row.source) + " for " + name_of(row.instruction_set));
      judge(the_case, [&row](Batch& batch) { run_row(row, batch); });
    }
  }
}

// ---- layout ----

struct Shape {
  std::int64_t batch, m, n;
};

class Layouts : public testing::TestWithParam<Shape> {
 protected:
  Batch batch_{GetParam().batch, GetParam().m, GetParam().n};
  std::unique_ptr<Executor> executor_ = Executor::make(1);
};

TEST_P(Layouts, StridesGiveTheSameFactorsAndKeepTheGaps) {
  ASSERT_EQ(run(batch_.call(), *executor_), Status::ok);
  const auto [batch, m, n] = GetParam();
  const std::int64_t k = std::min(m, n);
  const std::int64_t lda = m + 3, a_stride = lda * n + 5, ldh = m + 1, h_stride = ldh * n + 2,
                     tau_stride = k + 4;
  std::vector<float> a(static_cast<std::size_t>(batch * a_stride), kGap);
  std::vector<float> h(static_cast<std::size_t>(batch * h_stride), kGap);
  std::vector<float> tau(static_cast<std::size_t>(batch * tau_stride), kGap);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t j = 0; j < n; ++j)
      std::copy_n(&batch_.a[static_cast<std::size_t>((b * n + j) * m)], m,
                  &a[static_cast<std::size_t>(b * a_stride + j * lda)]);
  const Geqrf call = {.batch = batch,
                      .m = m,
                      .n = n,
                      .a = a.data(),
                      .lda = lda,
                      .a_stride = a_stride,
                      .h = h.data(),
                      .ldh = ldh,
                      .h_stride = h_stride,
                      .tau = tau.data(),
                      .tau_stride = tau_stride};
  ASSERT_EQ(run(call, *executor_), Status::ok);

  std::vector<float> expected(h.size(), kGap);
  std::vector<float> expected_tau(tau.size(), kGap);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t j = 0; j < n; ++j)
      std::copy_n(&batch_.h[static_cast<std::size_t>((b * n + j) * m)], m,
                  &expected[static_cast<std::size_t>(b * h_stride + j * ldh)]);
    std::copy_n(&batch_.tau[static_cast<std::size_t>(b * k)], k,
                &expected_tau[static_cast<std::size_t>(b * tau_stride)]);
  }
  EXPECT_EQ(std::memcmp(h.data(), expected.data(), h.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(tau.data(), expected_tau.data(), tau.size() * sizeof(float)), 0);
}

TEST_P(Layouts, InPlaceGivesTheSameFactors) {
  ASSERT_EQ(run(batch_.call(), *executor_), Status::ok);
  std::vector<float> both = batch_.a;
  std::vector<float> tau(batch_.tau.size());
  Geqrf call = batch_.call();
  call.a = both.data();
  call.h = both.data();
  call.tau = tau.data();
  ASSERT_EQ(run(call, *executor_), Status::ok);
  EXPECT_EQ(std::memcmp(both.data(), batch_.h.data(), both.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(tau.data(), batch_.tau.data(), tau.size() * sizeof(float)), 0);
}

TEST_P(Layouts, TwoThreadsGiveTheBitsOfOne) {
  ASSERT_EQ(run(batch_.call(), *executor_), Status::ok);
  Batch again(GetParam().batch, GetParam().m, GetParam().n);
  ASSERT_EQ(run(again.call(), *Executor::make(2)), Status::ok);
  EXPECT_EQ(std::memcmp(again.h.data(), batch_.h.data(), again.h.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(again.tau.data(), batch_.tau.data(), again.tau.size() * sizeof(float)), 0);
}

TEST_P(Layouts, ReadsButNeverWritesTheInput) {
  const std::vector<float> before = batch_.a;
  ASSERT_EQ(run(batch_.call(), *executor_), Status::ok);
  EXPECT_EQ(std::memcmp(before.data(), batch_.a.data(), before.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Layouts,
                         testing::Values(Shape{1, 1, 1}, Shape{37, 16, 16}, Shape{301, 17, 9},
                                         Shape{5, 9, 31}, Shape{21, 64, 64}, Shape{7, 100, 65},
                                         Shape{3, 257, 300}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.batch) + "x" +
                                  std::to_string(shape.param.m) + "x" +
                                  std::to_string(shape.param.n);
                         });

TEST(Geqrf, AcceptsAnyWorkspaceAlignment) {
  const auto executor = Executor::make(1);
  Batch batch(9, 40, 30);
  ASSERT_EQ(run(batch.call(), *executor), Status::ok);
  Batch again(9, 40, 30);
  std::size_t bytes = 0;
  ASSERT_EQ(geqrf_workspace_bytes(again.call(), *executor, &bytes), Status::ok);
  std::vector<char> workspace(bytes + 1);
  ASSERT_EQ(geqrf(again.call(), workspace.data() + 1, bytes, *executor), Status::ok);
  EXPECT_EQ(again.h, batch.h);
}

TEST(Geqrf, ManyShapesInTurnStayRight) {
  const auto executor = Executor::make(1);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 1; n <= 80; ++n) {  // more shapes than the executor keeps plans for
      Batch batch(3, n, n);
      ASSERT_EQ(run(batch.call(), *executor), Status::ok);
      double norm = 0, found = 0;  // the first column's norm is |r11|
      for (std::int64_t i = 0; i < n; ++i)
        norm += static_cast<double>(batch.a[static_cast<std::size_t>(i)]) *
                batch.a[static_cast<std::size_t>(i)];
      found = std::abs(static_cast<double>(batch.h[0]));
      ASSERT_NEAR(found, std::sqrt(norm), 1e-5 * std::sqrt(norm)) << n;
    }
  }
}

// ---- what is refused ----

TEST(Geqrf, EmptyIsOkAndNeedsNothing) {
  const auto executor = Executor::make(1);
  for (const Geqrf& call : {Geqrf{.batch = 0, .m = 4, .n = 4}, Geqrf{.batch = 2, .m = 0, .n = 4},
                            Geqrf{.batch = 2, .m = 4, .n = 0}}) {
    std::size_t bytes = 1;
    EXPECT_EQ(geqrf_workspace_bytes(call, *executor, &bytes), Status::ok);
    EXPECT_EQ(bytes, 0u);
    EXPECT_EQ(geqrf(call, nullptr, 0, *executor), Status::ok);
  }
}

class Refused : public testing::Test {
 protected:
  // The call after `change`, run with more workspace than anything needs; nothing may be written.
  template <typename Change>
  Status status_of(Change change) {
    Geqrf call = batch_.call();
    change(call);
    std::vector<char> workspace(1 << 22);
    const Status status = geqrf(call, workspace.data(), workspace.size(), *executor_);
    EXPECT_TRUE(std::all_of(batch_.h.begin(), batch_.h.end(), [](float x) { return x == kGap; }));
    return status;
  }
  Batch batch_{3, 6, 5};
  std::unique_ptr<Executor> executor_ = Executor::make(1);
};

TEST_F(Refused, BadShapes) {
  EXPECT_EQ(status_of([](Geqrf& call) { call.batch = -1; }), Status::bad_shape);
  EXPECT_EQ(status_of([](Geqrf& call) { call.m = -1; }), Status::bad_shape);
  EXPECT_EQ(status_of([](Geqrf& call) { call.n = -1; }), Status::bad_shape);
  EXPECT_EQ(status_of([](Geqrf& call) { call.n = kGeqrfMostRows + 1; }), Status::bad_shape);
}

TEST_F(Refused, BadStrides) {
  EXPECT_EQ(status_of([](Geqrf& call) { call.lda = 5; }), Status::bad_stride);
  EXPECT_EQ(status_of([](Geqrf& call) { call.ldh = -6; }), Status::bad_stride);
  EXPECT_EQ(status_of([](Geqrf& call) { call.h_stride = 29; }), Status::bad_stride);
  EXPECT_EQ(status_of([](Geqrf& call) { call.tau_stride = 4; }), Status::bad_stride);
  EXPECT_EQ(status_of([](Geqrf& call) { call.a_stride = INT64_MAX / 2; }), Status::bad_stride);
}

TEST_F(Refused, NullPointers) {
  EXPECT_EQ(status_of([](Geqrf& call) { call.a = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_of([](Geqrf& call) { call.h = nullptr; }), Status::null_pointer);
  EXPECT_EQ(status_of([](Geqrf& call) { call.tau = nullptr; }), Status::null_pointer);
  EXPECT_EQ(geqrf_workspace_bytes(batch_.call(), *executor_, nullptr), Status::null_pointer);
}

TEST_F(Refused, Overlaps) {
  EXPECT_EQ(status_of([](Geqrf& call) { call.a = call.h + 1; }), Status::overlap);
  EXPECT_EQ(status_of([](Geqrf& call) { call.tau = call.h + 4; }), Status::overlap);
  EXPECT_EQ(status_of([](Geqrf& call) {
              call.a = call.h;
              call.batch = 2;
              call.a_stride = 31;
            }),
            Status::overlap);
}

TEST_F(Refused, TooLittleWorkspace) {
  Geqrf call = batch_.call();
  call.a = call.h;  // in place needs a copy
  std::size_t bytes = 0;
  ASSERT_EQ(geqrf_workspace_bytes(call, *executor_, &bytes), Status::ok);
  ASSERT_GT(bytes, 0u);
  std::vector<char> workspace(bytes);
  EXPECT_EQ(geqrf(call, workspace.data(), bytes - 1, *executor_), Status::workspace_too_small);
  EXPECT_EQ(geqrf(call, nullptr, bytes, *executor_), Status::workspace_too_small);
  EXPECT_EQ(geqrf(call, workspace.data(), bytes, *executor_), Status::ok);
}

TEST(Executor, RefusesAbsurdThreadCounts) {
  EXPECT_EQ(Executor::make(-1), nullptr);
  EXPECT_EQ(Executor::make(1 << 20), nullptr);
  const auto all = Executor::make(0);
  ASSERT_NE(all, nullptr);
  EXPECT_GE(all->threads(), 1);
}

TEST(Status, EveryValueHasASentence) {
  for (int value = 0; value <= static_cast<int>(Status::internal_error); ++value)
    EXPECT_STRNE(describe(static_cast<Status>(value)), "unknown status") << value;
  EXPECT_STREQ(describe(static_cast<Status>(99)), "unknown status");
}

}  // namespace
}  // namespace kernelbeam
