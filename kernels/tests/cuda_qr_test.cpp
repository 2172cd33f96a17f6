// The GPU library on a GPU, held to FP64 on the host. Needs a device, so it is no part of ctest:
// build/tests/kernelbeam_cuda_test on a machine with one.
#include <gtest/gtest.h>
#include <kernelbeam/cuda/qr.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace kernelbeam::cuda {
namespace {

constexpr double kEps = 0x1p-23;

void must(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<std::size_t>(1, count) * sizeof(T)));
    must(cudaMemset(data_, 0xff, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& content) : DeviceArray(content.size()) {
    must(cudaMemcpy(data_, content.data(), count_ * sizeof(T), cudaMemcpyDefault));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  T* get() { return data_; }
  std::vector<T> read() const {
    std::vector<T> content(count_);
    must(cudaMemcpy(content.data(), data_, count_ * sizeof(T), cudaMemcpyDefault));
    return content;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

struct Shape {
  std::int64_t batch, m, n;
  std::int64_t k() const { return std::min(m, n); }
  std::size_t elements() const { return static_cast<std::size_t>(batch * m * n); }
};

std::vector<float> random_matrices(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> matrices(count);
  for (float& x : matrices) x = normal(random);
  return matrices;
}

// Column-major [m, p] := Q' C or Q C in FP64, from the reflectors of one matrix of H.
void apply_q(const float* h, const float* tau, std::int64_t m, std::int64_t k, bool transpose,
             std::vector<double>& c, std::int64_t p) {
  for (std::int64_t turn = 0; turn < k; ++turn) {
    const std::int64_t j = transpose ? turn : k - 1 - turn;
    for (std::int64_t l = 0; l < p; ++l) {
      double* const x = &c[static_cast<std::size_t>(l * m)];
      double sum = x[j];
      for (std::int64_t i = j + 1; i < m; ++i) sum += static_cast<double>(h[j * m + i]) * x[i];
      sum *= tau[j];
      x[j] -= sum;
      for (std::int64_t i = j + 1; i < m; ++i) x[i] -= sum * h[j * m + i];
    }
  }
}

// Worst over the columns of ||(R - Q'A) e_j|| / (eps ||A e_j||).
double column_error(const float* a, const float* h, const float* tau, const Shape& shape) {
  const std::int64_t m = shape.m, n = shape.n;
  std::vector<double> c(a, a + m * n);
  apply_q(h, tau, m, shape.k(), true, c, n);
  double worst = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    double off = 0, size = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      const double x = c[static_cast<std::size_t>(j * m + i)] - (i <= j ? h[j * m + i] : 0.0);
      off += x * x;
      size += static_cast<double>(a[j * m + i]) * a[j * m + i];
    }
    const double error = std::sqrt(off) / (kEps * std::sqrt(size));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

double limit(const Shape& shape) {
  return std::min(10 * std::sqrt(static_cast<double>(std::max(shape.m, shape.n))), 400.0);
}

class CudaQr : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = Device::make(0);
    ASSERT_NE(device_, nullptr) << "no device that this library has kernels for";
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override { cudaStreamDestroy(stream_); }

  // With exactly the workspace that the query names.
  template <typename Call, typename Query, typename Run>
  void run(const Call& call, Query query, Run enqueue) {
    std::size_t bytes = 0;
    ASSERT_EQ(query(call, *device_, &bytes), Status::ok);
    DeviceArray<unsigned char> workspace(bytes);
    ASSERT_EQ(enqueue(call, Workspace{workspace.get(), bytes}, *device_, stream_), Status::ok);
    must(cudaStreamSynchronize(stream_));
  }
  void run(const Geqrf& call) { run(call, geqrf_workspace_bytes, geqrf); }
  void run(const Ormqr& call) { run(call, ormqr_workspace_bytes, ormqr); }
  void run(const Orgqr& call) { run(call, orgqr_workspace_bytes, orgqr); }
  void run(const Qr& call) { run(call, qr_workspace_bytes, qr); }
  void run(const QrSolve& call) { run(call, qr_solve_workspace_bytes, qr_solve); }

  struct Factors {
    std::vector<float> h, tau;
  };
  Factors factor(const std::vector<float>& a, const Shape& shape) {
    DeviceArray<float> device_a(a), h(a.size()),
        tau(static_cast<std::size_t>(shape.batch * shape.k()));
    run(Geqrf{.batch = shape.batch,
              .m = shape.m,
              .n = shape.n,
              .a = {.first = device_a.get()},
              .h = {.first = h.get()},
              .tau = tau.get()});
    return {h.read(), tau.read()};
  }

  std::unique_ptr<Device> device_;
  cudaStream_t stream_ = nullptr;
};

TEST_F(CudaQr, FactorsEveryKindOfShape) {
  for (const Shape& shape : std::initializer_list<Shape>{{1, 1, 1},
                                                         {20, 32, 32},
                                                         {3, 33, 17},
                                                         {3, 17, 33},
                                                         {5, 64, 64},
                                                         {4, 176, 176},
                                                         {2, 300, 299},
                                                         {2, 352, 352},
                                                         {2, 509, 509},
                                                         {4, 512, 512},
                                                         {1, 1024, 1024},
                                                         {2, 700, 100},
                                                         {1, 1500, 40},
                                                         {1, 40, 1500},
                                                         {1, 1100, 1030},
                                                         {1, 5001, 300},
                                                         {2, 8192, 37},
                                                         {700, 8, 8}}) {
    SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.m << " x " << shape.n);
    const std::vector<float> a = random_matrices(shape.elements());
    const Factors factors = factor(a, shape);
    double worst = 0;
    for (std::int64_t b = 0; b < shape.batch; b += std::max<std::int64_t>(1, shape.batch / 3)) {
      const double error =
          column_error(&a[static_cast<std::size_t>(b * shape.m * shape.n)],
                       &factors.h[static_cast<std::size_t>(b * shape.m * shape.n)],
                       &factors.tau[static_cast<std::size_t>(b * shape.k())], shape);
      if (!(error <= worst)) worst = error;
    }
    EXPECT_LE(worst, limit(shape));
  }
}

TEST_F(CudaQr, LayoutsAndInPlaceGiveTheSameBits) {
  const Shape shape{3, 70, 45};
  const std::vector<float> a = random_matrices(shape.elements());
  const Factors expected = factor(a, shape);
  const std::int64_t lda = 77, stride = 45 * 77 + 9, by_rows = 51, row_stride = 70 * 51 + 3;
  const auto spread = [&](const std::vector<float>& dense, bool rows) {
    std::vector<float> wide(static_cast<std::size_t>(shape.batch * (rows ? row_stride : stride)),
                            -7);
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t j = 0; j < shape.n; ++j)
        for (std::int64_t i = 0; i < shape.m; ++i)
          wide[static_cast<std::size_t>(rows ? b * row_stride + i * by_rows + j
                                             : b * stride + j * lda + i)] =
              dense[static_cast<std::size_t>((b * shape.n + j) * shape.m + i)];
    return wide;
  };
  DeviceArray<float> tau(static_cast<std::size_t>(shape.batch * shape.k()));
  const auto call = [&](const ConstMatrices& from, const Matrices& to) {
    return Geqrf{
        .batch = shape.batch, .m = shape.m, .n = shape.n, .a = from, .h = to, .tau = tau.get()};
  };
  {
    DeviceArray<float> strided(spread(a, false));
    run(call({strided.get(), lda, stride}, {strided.get(), lda, stride}));
    EXPECT_EQ(strided.read(), spread(expected.h, false));
    EXPECT_EQ(tau.read(), expected.tau);
  }
  {
    DeviceArray<float> rows(spread(a, true));
    run(call({rows.get(), by_rows, row_stride, Order::row_major},
             {rows.get(), by_rows, row_stride, Order::row_major}));
    EXPECT_EQ(rows.read(), spread(expected.h, true));
  }
  {
    DeviceArray<float> dense(a);
    run(call({.first = dense.get()}, {.first = dense.get()}));
    EXPECT_EQ(dense.read(), expected.h);
  }
  {
    DeviceArray<float> dense(a), out(a.size());
    std::vector<const float*> from;
    std::vector<float*> to;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      from.push_back(dense.get() + b * shape.m * shape.n);
      to.push_back(out.get() + (shape.batch - 1 - b) * shape.m * shape.n);
    }
    DeviceArray<const float*> device_from(from);
    DeviceArray<float*> device_to(to);
    run(call({.each = device_from.get()}, {.each = device_to.get()}));
    const std::vector<float> h = out.read();
    const std::size_t one = static_cast<std::size_t>(shape.m * shape.n);
    for (std::size_t b = 0; b < 3; ++b)
      EXPECT_TRUE(std::equal(h.begin() + static_cast<std::ptrdiff_t>(b * one),
                             h.begin() + static_cast<std::ptrdiff_t>((b + 1) * one),
                             expected.h.begin() + static_cast<std::ptrdiff_t>((2 - b) * one)));
  }
}

TEST_F(CudaQr, AnExplicitTauStrideLeavesItsGapsAlone) {
  const Shape shape{2, 20, 12};
  const std::vector<float> a = random_matrices(shape.elements());
  const Factors expected = factor(a, shape);
  DeviceArray<float> device_a(a), h(a.size()), tau(std::vector<float>(2 * 17, -3));
  run(Geqrf{.batch = 2,
            .m = 20,
            .n = 12,
            .a = {.first = device_a.get()},
            .h = {.first = h.get()},
            .tau = tau.get(),
            .tau_stride = 17});
  const std::vector<float> got = tau.read();
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t j = 0; j < 17; ++j)
      EXPECT_EQ(got[17 * b + j], j < 12 ? expected.tau[12 * b + j] : -3);
}

TEST_F(CudaQr, QAndItsTransposeAreThoseOfTheReflectors) {
  for (const Shape& shape :
       std::initializer_list<Shape>{{3, 40, 40}, {2, 130, 50}, {1, 700, 260}, {2, 33, 1}}) {
    const std::int64_t p = 37;
    const std::vector<float> a = random_matrices(shape.elements());
    const Factors factors = factor(a, shape);
    const std::vector<float> c =
        random_matrices(static_cast<std::size_t>(shape.batch * shape.m * p), 2);
    for (const bool transpose : {false, true}) {
      DeviceArray<float> h(factors.h), tau(factors.tau), device_c(c);
      run(Ormqr{.batch = shape.batch,
                .m = shape.m,
                .p = p,
                .k = shape.n,
                .transpose = transpose,
                .h = {.first = h.get()},
                .tau = tau.get(),
                .c = {.first = device_c.get()}});
      const std::vector<float> got = device_c.read();
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        const std::int64_t first = b * shape.m * p;
        std::vector<double> exact(c.begin() + first, c.begin() + first + shape.m * p);
        apply_q(&factors.h[static_cast<std::size_t>(b * shape.m * shape.n)],
                &factors.tau[static_cast<std::size_t>(b * shape.n)], shape.m, shape.n, transpose,
                exact, p);
        double off = 0, size = 0;
        for (std::size_t i = 0; i < exact.size(); ++i) {
          const double difference = got[static_cast<std::size_t>(first) + i] - exact[i];
          off += difference * difference;
          size += exact[i] * exact[i];
        }
        EXPECT_LE(std::sqrt(off / size), 10 * kEps) << shape.m << " x " << shape.n;
      }
    }
  }
}

void expect_product(const std::vector<float>& q, const std::vector<float>& r,
                    const std::vector<float>& a, const Shape& shape, std::int64_t p) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    const float* const qb = &q[static_cast<std::size_t>(b * shape.m * p)];
    const float* const rb = &r[static_cast<std::size_t>(b * p * shape.n)];
    const float* const ab = &a[static_cast<std::size_t>(b * shape.m * shape.n)];
    double worst = 0, skew = 0;
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double off = 0, size = 0;
      for (std::int64_t i = 0; i < shape.m; ++i) {
        double x = -static_cast<double>(ab[j * shape.m + i]);
        for (std::int64_t l = 0; l < p; ++l)
          x += static_cast<double>(qb[l * shape.m + i]) * rb[j * p + l];
        off += x * x;
        size += static_cast<double>(ab[j * shape.m + i]) * ab[j * shape.m + i];
      }
      worst = std::max(worst, std::sqrt(off / size));
      for (std::int64_t i = j + 1; i < p; ++i) EXPECT_EQ(rb[j * p + i], 0);
    }
    for (std::int64_t one = 0; one < p; ++one)
      for (std::int64_t two = 0; two <= one; ++two) {
        double dot = one == two ? -1 : 0;
        for (std::int64_t i = 0; i < shape.m; ++i)
          dot += static_cast<double>(qb[one * shape.m + i]) * qb[two * shape.m + i];
        skew = std::max(skew, std::abs(dot));
      }
    EXPECT_LE(worst, 2 * limit(shape) * kEps);
    EXPECT_LE(skew, 2 * static_cast<double>(std::max<std::int64_t>(shape.m, 16)) * kEps);
  }
}

TEST_F(CudaQr, QTimesRIsA) {
  for (const Shape& shape :
       std::initializer_list<Shape>{{2, 50, 50}, {2, 90, 31}, {2, 31, 90}, {1, 300, 200}})
    for (const bool complete : {false, true}) {
      SCOPED_TRACE(testing::Message() << shape.m << " x " << shape.n << " complete " << complete);
      const std::int64_t p = complete ? shape.m : shape.k();
      const std::vector<float> a = random_matrices(shape.elements());
      DeviceArray<float> device_a(a), q(static_cast<std::size_t>(shape.batch * shape.m * p)),
          r(static_cast<std::size_t>(shape.batch * p * shape.n));
      run(Qr{.batch = shape.batch,
             .m = shape.m,
             .n = shape.n,
             .complete = complete,
             .a = {.first = device_a.get()},
             .q = {.first = q.get()},
             .r = {.first = r.get()}});
      expect_product(q.read(), r.read(), a, shape, p);
      EXPECT_EQ(device_a.read(), a) << "the input is left alone";
    }
}

TEST_F(CudaQr, FirstColumnsOfQAreThoseOfTheWhole) {
  const Shape shape{2, 60, 20};
  const Factors factors = factor(random_matrices(shape.elements()), shape);
  DeviceArray<float> h(factors.h), tau(factors.tau), whole(2 * 60 * 60), part(2 * 60 * 7);
  const Orgqr all{.batch = 2,
                  .m = 60,
                  .p = 60,
                  .k = 20,
                  .h = {.first = h.get()},
                  .tau = tau.get(),
                  .q = {.first = whole.get()}};
  Orgqr some = all;
  some.p = 7;
  some.q = {.first = part.get()};
  run(all);
  run(some);
  const std::vector<float> everything = whole.read(), first = part.read();
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < 60 * 7; ++i)
      EXPECT_EQ(first[b * 60 * 7 + i], everything[b * 60 * 60 + i]);
}

TEST_F(CudaQr, LeastSquaresResidualsAreOrthogonalToA) {
  for (const Shape& shape : std::initializer_list<Shape>{{3, 50, 50}, {2, 200, 70}, {1, 600, 3}}) {
    const std::int64_t p = 5;
    const std::vector<float> a = random_matrices(shape.elements());
    const std::vector<float> b =
        random_matrices(static_cast<std::size_t>(shape.batch * shape.m * p), 3);
    DeviceArray<float> device_a(a), device_b(b),
        x(static_cast<std::size_t>(shape.batch * shape.n * p));
    run(QrSolve{.batch = shape.batch,
                .m = shape.m,
                .n = shape.n,
                .p = p,
                .a = {.first = device_a.get()},
                .b = {.first = device_b.get()},
                .x = {.first = x.get()}});
    const std::vector<float> got = x.read();
    for (std::int64_t matrix = 0; matrix < shape.batch; ++matrix)
      for (std::int64_t column = 0; column < p; ++column) {
        const float* const ab = &a[static_cast<std::size_t>(matrix * shape.m * shape.n)];
        const float* const xb = &got[static_cast<std::size_t>((matrix * p + column) * shape.n)];
        std::vector<double> residual(static_cast<std::size_t>(shape.m));
        double size = 0, solution = 0;
        for (std::int64_t i = 0; i < shape.m; ++i) {
          double value = -b[static_cast<std::size_t>((matrix * p + column) * shape.m + i)];
          for (std::int64_t j = 0; j < shape.n; ++j)
            value += static_cast<double>(ab[j * shape.m + i]) * xb[j];
          residual[static_cast<std::size_t>(i)] = value;
          size += value * value;
        }
        for (std::int64_t j = 0; j < shape.n; ++j) solution += static_cast<double>(xb[j]) * xb[j];
        // A backward error of the size that the factorisation is held to.
        const double frobenius = std::sqrt(static_cast<double>(shape.m * shape.n));
        const double allowed =
            limit(shape) * kEps * frobenius * (std::sqrt(size) + frobenius * std::sqrt(solution));
        for (std::int64_t j = 0; j < shape.n; ++j) {
          double dot = 0;
          for (std::int64_t i = 0; i < shape.m; ++i)
            dot += static_cast<double>(ab[j * shape.m + i]) * residual[static_cast<std::size_t>(i)];
          EXPECT_LE(std::abs(dot), allowed);
        }
      }
  }
}

TEST_F(CudaQr, ANaNStaysInItsMatrix) {
  const Shape shape{4, 96, 96};
  std::vector<float> a = random_matrices(shape.elements());
  const Factors clean = factor(a, shape);
  const std::size_t one = 96 * 96;
  a[2 * one + 1234] = std::numeric_limits<float>::quiet_NaN();
  const Factors spoilt = factor(a, shape);
  for (std::size_t b : {0u, 1u, 3u})
    EXPECT_TRUE(std::equal(clean.h.begin() + static_cast<std::ptrdiff_t>(b * one),
                           clean.h.begin() + static_cast<std::ptrdiff_t>((b + 1) * one),
                           spoilt.h.begin() + static_cast<std::ptrdiff_t>(b * one)));
  EXPECT_TRUE(std::isnan(spoilt.tau[3 * 96 - 2]) || std::isnan(spoilt.h[3 * one - 1]));
}

TEST_F(CudaQr, CapturedIntoAGraphItGivesTheSameBits) {
  for (const Shape& shape :
       std::initializer_list<Shape>{{20, 32, 32}, {3, 512, 512}, {1, 2048, 2048}}) {
    const std::vector<float> a = random_matrices(shape.elements());
    const Factors expected = factor(a, shape);
    DeviceArray<float> device_a(a), h(a.size()),
        tau(static_cast<std::size_t>(shape.batch * shape.k()));
    const Geqrf call{.batch = shape.batch,
                     .m = shape.m,
                     .n = shape.n,
                     .a = {.first = device_a.get()},
                     .h = {.first = h.get()},
                     .tau = tau.get()};
    std::size_t bytes = 0;
    ASSERT_EQ(geqrf_workspace_bytes(call, *device_, &bytes), Status::ok);
    DeviceArray<unsigned char> workspace(bytes);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    EXPECT_EQ(geqrf(call, {workspace.get(), bytes}, *device_, stream_), Status::ok);
    must(cudaStreamEndCapture(stream_, &graph));
    must(cudaGraphInstantiate(&executable, graph, 0));
    for (int replay = 0; replay < 2; ++replay) {
      must(cudaMemset(h.get(), 0xff, shape.elements() * sizeof(float)));
      must(cudaGraphLaunch(executable, stream_));
      must(cudaStreamSynchronize(stream_));
      EXPECT_EQ(h.read(), expected.h);
      EXPECT_EQ(tau.read(), expected.tau);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
}

// From the second call on, plans of many nodes run as graphs of the library's own.
TEST_F(CudaQr, TheSameArraysAgainGiveTheSameBits) {
  const Shape shape{1, 1100, 1100};
  const std::vector<float> a = random_matrices(shape.elements());
  const Factors expected = factor(a, shape);
  DeviceArray<float> device_a(a), h(a.size()), tau(1100);
  const Geqrf call{.batch = 1,
                   .m = 1100,
                   .n = 1100,
                   .a = {.first = device_a.get()},
                   .h = {.first = h.get()},
                   .tau = tau.get()};
  std::size_t bytes = 0;
  ASSERT_EQ(geqrf_workspace_bytes(call, *device_, &bytes), Status::ok);
  DeviceArray<unsigned char> workspace(bytes);
  for (int i = 0; i < 4; ++i) {
    must(cudaMemset(h.get(), 0xff, a.size() * sizeof(float)));
    ASSERT_EQ(geqrf(call, {workspace.get(), bytes}, *device_, stream_), Status::ok);
    must(cudaStreamSynchronize(stream_));
    EXPECT_EQ(h.read(), expected.h);
    EXPECT_EQ(tau.read(), expected.tau);
  }
}

TEST_F(CudaQr, MistakesAreNamedAndTouchNothing) {
  DeviceArray<float> a(random_matrices(100)), h(100), tau(10);
  const Geqrf good{.batch = 1,
                   .m = 10,
                   .n = 10,
                   .a = {.first = a.get()},
                   .h = {.first = h.get()},
                   .tau = tau.get()};
  const auto status = [&](const Geqrf& call) { return geqrf(call, {}, *device_, stream_); };
  Geqrf call = good;
  call.m = -1;
  EXPECT_EQ(status(call), Status::bad_shape);
  call = good;
  call.n = kMostRows + 1;
  EXPECT_EQ(status(call), Status::bad_shape);
  call = good;
  call.a.leading = 9;
  EXPECT_EQ(status(call), Status::bad_stride);
  call = good;
  call.tau = nullptr;
  EXPECT_EQ(status(call), Status::null_pointer);
  call = good;
  call.a.leading = 12;  // has to be copied, so it needs a workspace
  EXPECT_EQ(status(call), Status::workspace_too_small);
  call = good;
  call.batch = 0;
  call.a = {};
  EXPECT_EQ(status(call), Status::ok);
  for (const float x : h.read()) EXPECT_TRUE(std::isnan(x));
}

}  // namespace
}  // namespace kernelbeam::cuda
