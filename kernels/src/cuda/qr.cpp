// The calls: what a caller passed is looked at, arrays that kernels cannot take as they are go
// through the workspace, and the kernels are enqueued. Each call is written once: a size query runs
// it without enqueuing anything.
#include <kernelbeam/cuda/qr.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>

#include "cuda/block_reflectors.h"
#include "cuda/check.h"
#include "cuda/device_state.h"
#include "cuda/qr_plan.h"
#include "cuda/staging.h"
#include "cuda/triangles.h"

namespace kernelbeam::cuda {
namespace {

constexpr std::int64_t kGeqrfKey = 1;  // first word of the plan key
constexpr std::size_t kAlignment = 256;

// One call: hands out its workspace, and says whether anything is to be enqueued.
class Run {
 public:
  Run(DeviceState& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  static Run measuring(DeviceState& device) {
    Run run(device, nullptr);
    run.is_measuring_ = true;
    return run;
  }
  void use(const Workspace& workspace) { base_ = static_cast<std::byte*>(workspace.memory); }

  bool is_measuring() const { return is_measuring_; }
  DeviceState& device() const { return device_; }
  cudaStream_t stream() const { return stream_; }
  std::size_t bytes() const { return used_; }

  void* take_bytes(std::size_t bytes) {
    std::byte* const at = base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return is_measuring_ ? nullptr : at;
  }
  float* take(std::int64_t count) {
    return static_cast<float*>(take_bytes(static_cast<std::size_t>(count) * sizeof(float)));
  }

  // Enqueues it, unless only its workspace is asked for.
  template <typename Step>
  Status step(Step enqueue) const {
    return is_measuring_ ? Status::ok : enqueue();
  }

 private:
  DeviceState& device_;
  cudaStream_t stream_;
  std::byte* base_ = nullptr;
  std::size_t used_ = 0;
  bool is_measuring_ = false;
};

// ---- what a caller passed ----

bool is_size(std::int64_t value, std::int64_t most) {
  return value >= 0 && value <= most;
}

template <typename T>
Status check_layout(const BasicMatrices<T>& matrices, const BatchShape& shape) {
  const bool by_rows = matrices.order == Order::row_major;
  const std::int64_t line = by_rows ? shape.columns : shape.rows;
  const std::int64_t lines = by_rows ? shape.rows : shape.columns;
  const std::int64_t leading = matrices.leading == 0 ? line : matrices.leading;
  if (matrices.leading < 0 || matrices.stride < 0 || leading < line) return Status::bad_stride;
  const std::int64_t matrix = (lines - 1) * leading + line;
  if (matrices.each == nullptr && matrices.stride != 0 && shape.batch > 1 &&
      matrices.stride < matrix)
    return Status::bad_stride;
  return Status::ok;
}

template <typename T>
bool is_missing(const BasicMatrices<T>& matrices) {
  return matrices.first == nullptr && matrices.each == nullptr;
}

Status check_scales(std::int64_t tau_stride, std::int64_t k) {
  return tau_stride == 0 || tau_stride >= k ? Status::ok : Status::bad_stride;
}

// ---- arrays that kernels take: gap-free and column-major ----

Status as_dense(Run& run, const ConstMatrices& matrices, const BatchShape& shape, bool always_copy,
                const float*& dense) {
  if (!always_copy && is_gap_free(matrices, shape)) {
    dense = matrices.first;
    return Status::ok;
  }
  float* const copy = run.take(shape.elements());
  dense = copy;
  return run.step([&] { return gather(matrices, copy, shape, run.stream()); });
}

// Where a result is made; `hand_over` brings it to the caller.
float* place_for(Run& run, const Matrices& matrices, const BatchShape& shape) {
  return is_gap_free(matrices, shape) ? matrices.first : run.take(shape.elements());
}
Status hand_over(const Run& run, const float* dense, const Matrices& matrices,
                 const BatchShape& shape) {
  if (is_gap_free(matrices, shape)) return Status::ok;
  return run.step([&] { return scatter(dense, matrices, shape, run.stream()); });
}

ConstMatrices read_only(const Matrices& matrices) {
  return {.first = matrices.first,
          .leading = matrices.leading,
          .stride = matrices.stride,
          .order = matrices.order,
          .each = const_cast<const float* const*>(matrices.each)};
}

// ---- operations on them ----

Status find_plan(DeviceState& device, const BatchShape& shape,
                 std::shared_ptr<const RecordedPlan>& plan) {
  const std::array<std::int64_t, 4> key = {kGeqrfKey, shape.batch, shape.rows, shape.columns};
  plan = device.plans.find(key);
  if (plan) return Status::ok;
  QrPlan made = plan_geqrf(shape.batch, shape.rows, shape.columns, device.device);
  if (made.row == nullptr) return Status::not_supported;
  if (!made.plan.error.empty()) return Status::internal_error;
  KERNELBEAM_RETURN_IF_BAD(device.replay.allow(made.plan));
  plan = device.plans.insert(key, std::move(made.plan));
  return Status::ok;
}

// `a` and `h` must not overlap.
Status factor(Run& run, const float* a, float* h, float* tau, const BatchShape& shape) {
  std::shared_ptr<const RecordedPlan> plan;
  KERNELBEAM_RETURN_IF_BAD(find_plan(run.device(), shape, plan));
  void* const scratch = run.take_bytes(static_cast<std::size_t>(plan->workspace_bytes));
  return run.step([&] {
    // Kernels only read A; a plan has one pointer type for all tensors.
    void* const tensors[] = {const_cast<float*>(a), h, tau};
    DeviceState& device = run.device();
    return device.graphs.run(plan, tensors, scratch, run.stream(), device.replay);
  });
}

Status multiply(Run& run, Apply which, const float* h, const float* tau, float* c,
                const ReflectorShape& shape, bool c_is_identity) {
  auto* const t = static_cast<float*>(run.take_bytes(triangular_factor_bytes(shape)));
  KERNELBEAM_RETURN_IF_BAD(
      run.step([&] { return form_triangular_factors(h, tau, t, shape, run.stream()); }));
  return run.step(
      [&] { return apply_reflectors(which, h, t, c, shape, c_is_identity, run.stream()); });
}

Status make_q(Run& run, const float* h, const float* tau, float* q, const ReflectorShape& shape) {
  KERNELBEAM_RETURN_IF_BAD(
      run.step([&] { return fill_identity(q, shape.batch, shape.m, shape.p, run.stream()); }));
  return multiply(run, Apply::q, h, tau, q, shape, true);
}

// ---- the calls ----

Status check(const Geqrf& call) {
  if (!is_size(call.batch, kMostBatch) || !is_size(call.m, kMostRows) ||
      !is_size(call.n, kMostRows))
    return Status::bad_shape;
  const BatchShape shape{call.batch, call.m, call.n};
  if (shape.elements() == 0) return Status::ok;
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.a, shape));
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.h, shape));
  return check_scales(call.tau_stride, std::min(call.m, call.n));
}
bool is_empty(const Geqrf& call) {
  return call.batch == 0 || call.m == 0 || call.n == 0;
}
bool lacks_array(const Geqrf& call) {
  return is_missing(call.a) || is_missing(call.h) || call.tau == nullptr;
}
// Kernels read A and write H. A size query without arrays allows for the copy.
bool is_in_place(const Geqrf& call) {
  return call.a.first == call.h.first && call.a.each == nullptr && call.h.each == nullptr;
}

Status enqueue(const Geqrf& call, Run& run) {
  const BatchShape shape{call.batch, call.m, call.n};
  const std::int64_t k = std::min(call.m, call.n);
  const float* a = nullptr;
  KERNELBEAM_RETURN_IF_BAD(as_dense(run, call.a, shape, is_in_place(call), a));
  float* const h = place_for(run, call.h, shape);
  const BatchShape scales{call.batch, k, 1};
  const Matrices tau_out{.first = call.tau, .stride = call.tau_stride};
  float* const tau = place_for(run, tau_out, scales);
  KERNELBEAM_RETURN_IF_BAD(factor(run, a, h, tau, shape));
  KERNELBEAM_RETURN_IF_BAD(hand_over(run, h, call.h, shape));
  return hand_over(run, tau, tau_out, scales);
}

// Of ormqr and orgqr alike.
Status check_product(std::int64_t batch, std::int64_t m, std::int64_t p, std::int64_t k,
                     const ConstMatrices& h, std::int64_t tau_stride, const Matrices& c) {
  if (!is_size(batch, kMostBatch) || !is_size(m, kMostRows) || !is_size(p, kMostRows) ||
      !is_size(k, m))
    return Status::bad_shape;
  if (batch == 0 || m == 0 || p == 0) return Status::ok;
  KERNELBEAM_RETURN_IF_BAD(check_layout(c, {batch, m, p}));
  if (k == 0) return Status::ok;
  KERNELBEAM_RETURN_IF_BAD(check_layout(h, {batch, m, k}));
  return check_scales(tau_stride, k);
}

Status check(const Ormqr& call) {
  return check_product(call.batch, call.m, call.p, call.k, call.h, call.tau_stride, call.c);
}
bool is_empty(const Ormqr& call) {
  return call.batch == 0 || call.m == 0 || call.p == 0 || call.k == 0;
}
bool lacks_array(const Ormqr& call) {
  return is_missing(call.h) || is_missing(call.c) || call.tau == nullptr;
}

Status enqueue(const Ormqr& call, Run& run) {
  const BatchShape shape{call.batch, call.m, call.p};
  const float* h = nullptr;
  KERNELBEAM_RETURN_IF_BAD(as_dense(run, call.h, {call.batch, call.m, call.k}, false, h));
  float* const c = place_for(run, call.c, shape);
  if (!is_gap_free(call.c, shape))
    KERNELBEAM_RETURN_IF_BAD(
        run.step([&] { return gather(read_only(call.c), c, shape, run.stream()); }));
  const ReflectorShape reflectors{.batch = call.batch,
                                  .m = call.m,
                                  .k = call.k,
                                  .p = call.p,
                                  .tau_stride = call.tau_stride == 0 ? call.k : call.tau_stride,
                                  .h_columns = call.k};
  KERNELBEAM_RETURN_IF_BAD(multiply(run, call.transpose ? Apply::q_transposed : Apply::q, h,
                                    call.tau, c, reflectors, false));
  return hand_over(run, c, call.c, shape);
}

Status check(const Orgqr& call) {
  if (call.p > call.m) return Status::bad_shape;
  return check_product(call.batch, call.m, call.p, call.k, call.h, call.tau_stride, call.q);
}
bool is_empty(const Orgqr& call) {
  return call.batch == 0 || call.m == 0 || call.p == 0;
}
bool lacks_array(const Orgqr& call) {
  return is_missing(call.q) || (call.k > 0 && (is_missing(call.h) || call.tau == nullptr));
}

Status enqueue(const Orgqr& call, Run& run) {
  const BatchShape shape{call.batch, call.m, call.p};
  const float* h = nullptr;
  if (call.k > 0)
    KERNELBEAM_RETURN_IF_BAD(as_dense(run, call.h, {call.batch, call.m, call.k}, false, h));
  float* const q = place_for(run, call.q, shape);
  KERNELBEAM_RETURN_IF_BAD(make_q(run, h, call.tau, q,
                                  {.batch = call.batch,
                                   .m = call.m,
                                   .k = call.k,
                                   .p = call.p,
                                   .tau_stride = call.tau_stride == 0 ? call.k : call.tau_stride,
                                   .h_columns = call.k}));
  return hand_over(run, q, call.q, shape);
}

Status check(const Qr& call) {
  if (!is_size(call.batch, kMostBatch) || !is_size(call.m, kMostRows) ||
      !is_size(call.n, kMostRows))
    return Status::bad_shape;
  if (call.batch == 0 || call.m == 0 || call.n == 0) return Status::ok;
  const std::int64_t p = call.complete ? call.m : std::min(call.m, call.n);
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.a, {call.batch, call.m, call.n}));
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.q, {call.batch, call.m, p}));
  return check_layout(call.r, {call.batch, p, call.n});
}
bool is_empty(const Qr& call) {
  return call.batch == 0 || call.m == 0 || call.n == 0;
}
bool lacks_array(const Qr& call) {
  return is_missing(call.a) || is_missing(call.q) || is_missing(call.r);
}

Status enqueue(const Qr& call, Run& run) {
  const std::int64_t k = std::min(call.m, call.n), p = call.complete ? call.m : k;
  const BatchShape whole{call.batch, call.m, call.n}, q_shape{call.batch, call.m, p},
      r_shape{call.batch, p, call.n};
  const float* a = nullptr;
  KERNELBEAM_RETURN_IF_BAD(as_dense(run, call.a, whole, false, a));
  float* const h = run.take(whole.elements());
  float* const tau = run.take(call.batch * k);
  KERNELBEAM_RETURN_IF_BAD(factor(run, a, h, tau, whole));
  float* const r = place_for(run, call.r, r_shape);
  KERNELBEAM_RETURN_IF_BAD(run.step(
      [&] { return copy_upper_triangle(h, r, call.batch, call.m, call.n, p, run.stream()); }));
  KERNELBEAM_RETURN_IF_BAD(hand_over(run, r, call.r, r_shape));
  float* const q = place_for(run, call.q, q_shape);
  KERNELBEAM_RETURN_IF_BAD(make_q(
      run, h, tau, q,
      {.batch = call.batch, .m = call.m, .k = k, .p = p, .tau_stride = k, .h_columns = call.n}));
  return hand_over(run, q, call.q, q_shape);
}

Status check(const QrSolve& call) {
  if (!is_size(call.batch, kMostBatch) || !is_size(call.m, kMostRows) || !is_size(call.n, call.m) ||
      !is_size(call.p, kMostRows))
    return Status::bad_shape;
  if (call.batch == 0 || call.n == 0 || call.p == 0) return Status::ok;
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.a, {call.batch, call.m, call.n}));
  KERNELBEAM_RETURN_IF_BAD(check_layout(call.b, {call.batch, call.m, call.p}));
  return check_layout(call.x, {call.batch, call.n, call.p});
}
bool is_empty(const QrSolve& call) {
  return call.batch == 0 || call.n == 0 || call.p == 0;
}
bool lacks_array(const QrSolve& call) {
  return is_missing(call.a) || is_missing(call.b) || is_missing(call.x);
}

Status enqueue(const QrSolve& call, Run& run) {
  const BatchShape whole{call.batch, call.m, call.n}, right{call.batch, call.m, call.p},
      solution{call.batch, call.n, call.p};
  const float* a = nullptr;
  KERNELBEAM_RETURN_IF_BAD(as_dense(run, call.a, whole, false, a));
  float* const h = run.take(whole.elements());
  float* const tau = run.take(call.batch * call.n);
  KERNELBEAM_RETURN_IF_BAD(factor(run, a, h, tau, whole));
  float* const c = run.take(right.elements());
  KERNELBEAM_RETURN_IF_BAD(run.step([&] { return gather(call.b, c, right, run.stream()); }));
  KERNELBEAM_RETURN_IF_BAD(multiply(run, Apply::q_transposed, h, tau, c,
                                    {.batch = call.batch,
                                     .m = call.m,
                                     .k = call.n,
                                     .p = call.p,
                                     .tau_stride = call.n,
                                     .h_columns = call.n},
                                    false));
  KERNELBEAM_RETURN_IF_BAD(run.step([&] {
    return solve_upper_triangle(h, c, call.batch, call.m, call.n, call.p, run.stream());
  }));
  float* const x = place_for(run, call.x, solution);
  KERNELBEAM_RETURN_IF_BAD(run.step(
      [&] { return copy_first_rows(c, x, call.batch, call.m, call.n, call.p, run.stream()); }));
  return hand_over(run, x, call.x, solution);
}

// ---- around every call ----

template <typename Body>
Status guarded(Device& device, Body body) noexcept {
  try {
    DeviceState& state = device.state();
    const std::lock_guard lock(state.mutex);
    const CurrentDevice current(state.ordinal);
    KERNELBEAM_RETURN_IF_BAD(current.status());
    return body(state);
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory;
  } catch (const std::exception&) {
    return Status::internal_error;
  }
}

template <typename Call>
Status measure(const Call& call, DeviceState& state, std::size_t& bytes) {
  Run run = Run::measuring(state);
  KERNELBEAM_RETURN_IF_BAD(enqueue(call, run));
  bytes = run.bytes();
  return Status::ok;
}

template <typename Call>
Status workspace_bytes(const Call& call, Device& device, std::size_t* bytes) noexcept {
  if (bytes == nullptr) return Status::null_pointer;
  *bytes = 0;
  KERNELBEAM_RETURN_IF_BAD(check(call));
  if (is_empty(call)) return Status::ok;
  return guarded(device, [&](DeviceState& state) { return measure(call, state, *bytes); });
}

template <typename Call>
Status run(const Call& call, const Workspace& workspace, Device& device,
           cudaStream_t stream) noexcept {
  KERNELBEAM_RETURN_IF_BAD(check(call));
  if (is_empty(call)) return Status::ok;
  if (lacks_array(call)) return Status::null_pointer;
  return guarded(device, [&](DeviceState& state) {
    std::size_t needed = 0;
    KERNELBEAM_RETURN_IF_BAD(measure(call, state, needed));
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(workspace.memory) % kAlignment == 0;
    if (needed > 0 && (workspace.memory == nullptr || !is_aligned || workspace.bytes < needed))
      return Status::workspace_too_small;
    Run enqueuing(state, stream);
    enqueuing.use(workspace);
    return enqueue(call, enqueuing);
  });
}

}  // namespace

Status geqrf_workspace_bytes(const Geqrf& call, Device& device, std::size_t* bytes) noexcept {
  return workspace_bytes(call, device, bytes);
}
Status geqrf(const Geqrf& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept {
  return run(call, workspace, device, stream);
}

Status ormqr_workspace_bytes(const Ormqr& call, Device& device, std::size_t* bytes) noexcept {
  return workspace_bytes(call, device, bytes);
}
// Without reflectors Q is I.
Status ormqr(const Ormqr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept {
  return run(call, workspace, device, stream);
}

Status orgqr_workspace_bytes(const Orgqr& call, Device& device, std::size_t* bytes) noexcept {
  return workspace_bytes(call, device, bytes);
}
Status orgqr(const Orgqr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept {
  return run(call, workspace, device, stream);
}

Status qr_workspace_bytes(const Qr& call, Device& device, std::size_t* bytes) noexcept {
  return workspace_bytes(call, device, bytes);
}
Status qr(const Qr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept {
  return run(call, workspace, device, stream);
}

Status qr_solve_workspace_bytes(const QrSolve& call, Device& device, std::size_t* bytes) noexcept {
  return workspace_bytes(call, device, bytes);
}
Status qr_solve(const QrSolve& call, Workspace workspace, Device& device,
                cudaStream_t stream) noexcept {
  return run(call, workspace, device, stream);
}

Status find_geqrf_row(std::int64_t batch, std::int64_t m, std::int64_t n, Device& device,
                      RowInfo* row) noexcept {
  if (row == nullptr) return Status::null_pointer;
  if (batch < 1 || m < 1 || n < 1 || batch > kMostBatch || m > kMostRows || n > kMostRows)
    return Status::bad_shape;
  return guarded(device, [&](DeviceState& state) {
    const QrPlan planned = plan_geqrf(batch, m, n, state.device);
    if (planned.row == nullptr) return Status::not_supported;
    *row = {planned.row->source, planned.row->knobs, planned.row->proof};
    return Status::ok;
  });
}

}  // namespace kernelbeam::cuda
