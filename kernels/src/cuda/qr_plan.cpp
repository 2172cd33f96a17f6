#include "cuda/qr_plan.h"

#include <algorithm>
#include <utility>

namespace kernelbeam::cuda {
namespace {

kbeam_buffer gap_free(std::int64_t batch, std::int64_t m, std::int64_t n) {
  kbeam_buffer buffer{};
  buffer.rank = 3;
  buffer.dim[0] = batch, buffer.dim[1] = m, buffer.dim[2] = n;
  buffer.stride[0] = m * n, buffer.stride[1] = 1, buffer.stride[2] = m;
  return buffer;
}

PlanShape shape_of(std::int64_t batch, std::int64_t m, std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  kbeam_buffer tau{};
  tau.rank = 2;
  tau.dim[0] = batch, tau.dim[1] = k;
  tau.stride[0] = k, tau.stride[1] = 1;
  return {.tensors = {{"A", KBEAM_INPUT, gap_free(batch, m, n)},
                      {"H", KBEAM_OUTPUT, gap_free(batch, m, n)},
                      {"tau", KBEAM_OUTPUT, tau}},
          .axes = {{"batch", batch}, {"m", m}, {"n", n}, {"k", k}}};
}

}  // namespace

QrPlan plan_geqrf(std::int64_t batch, std::int64_t m, std::int64_t n, const PlanDevice& device) {
  const PlanShape shape = shape_of(batch, m, n);
  for (const QrRow& row : qr_rows()) {
    if (n < row.least_columns || n > row.most_columns) continue;
    RecordedPlan plan = record_plan(row.plan, shape, device);
    if (!plan.not_supported) return {&row, std::move(plan)};
  }
  return {};
}

}  // namespace kernelbeam::cuda
