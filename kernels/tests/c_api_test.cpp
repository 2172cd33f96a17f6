// The C interface gives the results and refusals of the C++ one.
#include <gtest/gtest.h>
#include <kernelbeam/kernelbeam.h>
#include <kernelbeam/qr.h>

#include <vector>

namespace {

TEST(CApi, FactorsLikeTheCppCall) {
  std::vector<float> a(2 * 7 * 5);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>((i * 37) % 19) - 9.0f;
  std::vector<float> h(a.size()), tau(10), cpp_h(a.size()), cpp_tau(10);
  kernelbeam_executor* executor = kernelbeam_executor_create(1);
  ASSERT_NE(executor, nullptr);
  kernelbeam_sgeqrf call = {};
  call.batch = 2;
  call.m = 7;
  call.n = 5;
  call.a = a.data();
  call.h = h.data();
  call.tau = tau.data();
  std::size_t bytes = 0;
  ASSERT_EQ(kernelbeam_sgeqrf_batched_workspace(&call, executor, &bytes), KERNELBEAM_OK);
  std::vector<char> workspace(bytes);
  ASSERT_EQ(kernelbeam_sgeqrf_batched(&call, workspace.data(), bytes, executor), KERNELBEAM_OK);
  kernelbeam_executor_destroy(executor);

  const auto cpp = kernelbeam::Executor::make(1);
  const kernelbeam::Geqrf same = {
      .batch = 2, .m = 7, .n = 5, .a = a.data(), .h = cpp_h.data(), .tau = cpp_tau.data()};
  ASSERT_EQ(kernelbeam::geqrf(same, workspace.data(), bytes, *cpp), kernelbeam::Status::ok);
  EXPECT_EQ(h, cpp_h);
  EXPECT_EQ(tau, cpp_tau);
}

TEST(CApi, RefusesWithAStatus) {
  kernelbeam_executor* executor = kernelbeam_executor_create(1);
  kernelbeam_sgeqrf call = {};
  call.batch = -1;
  EXPECT_EQ(kernelbeam_sgeqrf_batched(&call, nullptr, 0, executor), KERNELBEAM_BAD_SHAPE);
  EXPECT_EQ(kernelbeam_sgeqrf_batched(nullptr, nullptr, 0, executor), KERNELBEAM_NULL_POINTER);
  EXPECT_EQ(kernelbeam_sgeqrf_batched(&call, nullptr, 0, nullptr), KERNELBEAM_NULL_POINTER);
  EXPECT_EQ(kernelbeam_sgeqrf_batched_workspace(&call, executor, nullptr), KERNELBEAM_NULL_POINTER);
  EXPECT_EQ(kernelbeam_executor_create(-3), nullptr);
  EXPECT_STREQ(kernelbeam_describe(KERNELBEAM_OK), "ok");
  kernelbeam_executor_destroy(executor);
  kernelbeam_executor_destroy(nullptr);
}

}  // namespace
