// geqrf: checks the call, chooses a row, records or finds its plan, and runs it; operands that a
// kernel cannot take as they are go through the workspace some matrices at a time. The arithmetic
// is in the rows.
#include <kbeam/cpu_plan.h>
#include <kernelbeam/qr.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "executor_state.h"
#include "qr/rows.h"
#include "qr/staging.h"

namespace kernelbeam {
namespace {

constexpr std::int64_t kMostBatch = std::int64_t{1}
                                    << 20;         // of one plan; a longer batch takes several
constexpr std::int64_t kStagedElements = 1 << 16;  // about what a core's L2 cache holds twice
constexpr std::int64_t kStagedMatrices =
    16;  // kernels may pack this many: parts that are multiples stay whole
constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kGeqrfKey = 1;  // first word of the plan key

// The call with its defaults filled in.
struct Operands {
  BatchShape matrices;
  BatchShape scales;  // tau as one column a matrix
  Columns<const float> a;
  Columns<float> h;
  Columns<float> tau;
};

Operands operands_of(const Geqrf& call) {
  const auto matrix_columns = [&](auto* data, std::int64_t leading, std::int64_t stride) {
    const std::int64_t column = leading == 0 ? call.m : leading;
    return Columns<std::remove_pointer_t<decltype(data)>>{data, column,
                                                          stride == 0 ? column * call.n : stride};
  };
  const std::int64_t k = std::min(call.m, call.n);
  Operands operands;
  operands.matrices = {call.batch, call.m, call.n};
  operands.scales = {call.batch, k, 1};
  operands.a = matrix_columns(call.a, call.lda, call.a_stride);
  operands.h = matrix_columns(call.h, call.ldh, call.h_stride);
  operands.tau = {call.tau, k, call.tau_stride == 0 ? k : call.tau_stride};
  return operands;
}

bool is_empty(const Geqrf& call) {
  return call.batch == 0 || call.m == 0 || call.n == 0;
}

// Whether the last element's index fits, and matrices and columns do not overlap.
template <typename T>
bool has_good_strides(const Columns<T>& operand, const BatchShape& shape) {
  constexpr auto kMost = static_cast<__int128>(std::numeric_limits<std::int64_t>::max() / 8);
  if (operand.column_stride < shape.rows) return false;
  const __int128 matrix =
      static_cast<__int128>(shape.columns - 1) * operand.column_stride + shape.rows;
  if (shape.batch > 1 && operand.matrix_stride < matrix) return false;
  return matrix + static_cast<__int128>(shape.batch - 1) * operand.matrix_stride <= kMost;
}

bool overlap(const float* first, std::int64_t first_count, const float* second,
             std::int64_t second_count) {
  const auto one = reinterpret_cast<std::uintptr_t>(first);
  const auto two = reinterpret_cast<std::uintptr_t>(second);
  return one < two + static_cast<std::uintptr_t>(second_count) * sizeof(float) &&
         two < one + static_cast<std::uintptr_t>(first_count) * sizeof(float);
}

bool is_in_place(const Operands& operands) {
  return operands.a.data == operands.h.data &&
         operands.a.column_stride == operands.h.column_stride &&
         (operands.a.matrix_stride == operands.h.matrix_stride || operands.matrices.batch == 1);
}

Status check_sizes(const Geqrf& call) {
  if (call.batch < 0 || call.m < 0 || call.n < 0) return Status::bad_shape;
  if (call.m > kGeqrfMostRows || call.n > kGeqrfMostRows) return Status::bad_shape;
  if (call.lda < 0 || call.ldh < 0 || call.a_stride < 0 || call.h_stride < 0 || call.tau_stride < 0)
    return Status::bad_stride;
  if (is_empty(call)) return Status::ok;
  const Operands operands = operands_of(call);
  if (!has_good_strides(operands.a, operands.matrices) ||
      !has_good_strides(operands.h, operands.matrices) ||
      !has_good_strides(operands.tau, operands.scales))
    return Status::bad_stride;
  return Status::ok;
}

Status check_arrays(const Operands& operands) {
  if (operands.a.data == nullptr || operands.h.data == nullptr || operands.tau.data == nullptr)
    return Status::null_pointer;
  const std::int64_t a_count = extent(operands.a, operands.matrices);
  const std::int64_t h_count = extent(operands.h, operands.matrices);
  const std::int64_t tau_count = extent(operands.tau, operands.scales);
  if (overlap(operands.tau.data, tau_count, operands.a.data, a_count) ||
      overlap(operands.tau.data, tau_count, operands.h.data, h_count))
    return Status::overlap;
  if (!is_in_place(operands) && overlap(operands.a.data, a_count, operands.h.data, h_count))
    return Status::overlap;
  return Status::ok;
}

// How a call is cut into parts, and where in the workspace the copies and the kernel's scratch lie.
struct Layout {
  std::int64_t part = 0;  // matrices at a time
  bool stage_a = false;
  bool stage_h = false;
  bool stage_tau = false;
  std::size_t a_offset = 0;
  std::size_t h_offset = 0;
  std::size_t tau_offset = 0;
  std::size_t scratch_offset = 0;
  std::size_t bytes = 0;
};

std::size_t aligned_bytes(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t staged_part(const BatchShape& shape, int threads) {
  const std::int64_t elements = shape.rows * shape.columns;
  if (elements > kStagedElements) return threads;
  const std::int64_t matrices = kStagedElements * threads / elements;
  return std::max<std::int64_t>(1, matrices / kStagedMatrices) * kStagedMatrices;
}

Layout make_layout(const Operands& operands, int threads) {
  Layout layout;
  layout.stage_a = is_in_place(operands) || !is_contiguous(operands.a, operands.matrices);
  layout.stage_h = !is_contiguous(operands.h, operands.matrices);
  layout.stage_tau = !is_contiguous(operands.tau, operands.scales);
  const bool staged = layout.stage_a || layout.stage_h || layout.stage_tau;
  const std::int64_t most = staged ? staged_part(operands.matrices, threads) : kMostBatch;
  layout.part = std::min(operands.matrices.batch, most);
  const std::size_t matrix_bytes =
      aligned_bytes(layout.part * operands.matrices.rows * operands.matrices.columns * 4);
  const std::size_t tau_bytes = aligned_bytes(layout.part * operands.scales.rows * 4);
  layout.h_offset = layout.stage_a ? matrix_bytes : 0;
  layout.tau_offset = layout.h_offset + (layout.stage_h ? matrix_bytes : 0);
  layout.scratch_offset = layout.tau_offset + (layout.stage_tau ? tau_bytes : 0);
  return layout;
}

kbeam::PlanTensor contiguous_tensor(const char* name, kbeam_role role, const BatchShape& shape) {
  kbeam::PlanTensor tensor{.name = name, .role = role, .type = KBEAM_F32, .rank = 3};
  tensor.dim[0] = shape.batch;
  tensor.dim[1] = shape.rows;
  tensor.dim[2] = shape.columns;
  tensor.stride[0] = shape.rows * shape.columns;
  tensor.stride[1] = 1;
  tensor.stride[2] = shape.rows;
  return tensor;
}

kbeam::PlanShape plan_shape(const BatchShape& shape) {
  const std::int64_t k = std::min(shape.rows, shape.columns);
  kbeam::PlanTensor tau{.name = "tau", .role = KBEAM_OUTPUT, .type = KBEAM_F32, .rank = 2};
  tau.dim[0] = shape.batch;
  tau.dim[1] = k;
  tau.stride[0] = k;
  tau.stride[1] = 1;
  kbeam::PlanShape plan;
  plan.tensors = {contiguous_tensor("A", KBEAM_INPUT, shape),
                  contiguous_tensor("H", KBEAM_OUTPUT, shape), tau};
  plan.axes = {{"batch", shape.batch}, {"m", shape.rows}, {"n", shape.columns}, {"k", k}};
  return plan;
}

using SharedPlan = std::shared_ptr<const kbeam::CpuPlan>;

// The plan of the first row that serves this shape here. A row may refuse a shape; then the next
// one is asked.
std::pair<Status, SharedPlan> find_plan(ExecutorState& state, const BatchShape& shape) {
  const PlanCache<kbeam::CpuPlan>::Key key = {kGeqrfKey, shape.batch, shape.rows, shape.columns};
  if (SharedPlan plan = state.plans.find(key)) return {Status::ok, plan};
  std::span<const QrRow> rows = qr_rows();
  while (const QrRow* row = choose_qr_row(rows, shape.columns)) {
    kbeam::CpuPlan plan =
        kbeam::CpuPlan::record(row->plan, plan_shape(shape), state.team.workers());
    if (plan.error().empty()) return {Status::ok, state.plans.insert(key, std::move(plan))};
    if (!plan.not_supported()) return {Status::internal_error, nullptr};
    rows = rows.subspan(static_cast<std::size_t>(row - rows.data()) + 1);
  }
  return {Status::not_supported, nullptr};
}

struct Plans {
  Status status = Status::ok;
  SharedPlan part;
  SharedPlan rest;  // of the matrices that do not fill a part; null when there are none
};

// Both plans and the workspace that the larger one needs.
Plans find_plans(ExecutorState& state, const BatchShape& shape, Layout& layout) {
  Plans plans;
  std::tie(plans.status, plans.part) = find_plan(state, {layout.part, shape.rows, shape.columns});
  const std::int64_t left = shape.batch % layout.part;
  if (plans.status == Status::ok && left != 0)
    std::tie(plans.status, plans.rest) = find_plan(state, {left, shape.rows, shape.columns});
  if (plans.status != Status::ok) return plans;
  const std::int64_t scratch =
      std::max(plans.part->scratch_bytes(), plans.rest ? plans.rest->scratch_bytes() : 0);
  layout.bytes = layout.scratch_offset + aligned_bytes(scratch);
  if (layout.bytes != 0)
    layout.bytes += kAlignment;  // the caller's workspace may have any alignment
  return plans;
}

// One part of the batch, `first` its first matrix.
void run_part(const Operands& operands, const Layout& layout, const kbeam::CpuPlan& plan,
              std::byte* workspace, std::int64_t first, std::int64_t count,
              kbeam::WorkerTeam& team) {
  const BatchShape matrices{count, operands.matrices.rows, operands.matrices.columns};
  const BatchShape scales{count, operands.scales.rows, 1};
  const auto part_of = [first](auto operand) {
    operand.data += first * operand.matrix_stride;
    return operand;
  };
  const auto staged = [workspace](std::size_t offset, const BatchShape& shape) {
    return Columns<float>{reinterpret_cast<float*>(workspace + offset), shape.rows,
                          shape.rows * shape.columns};
  };
  const Columns<const float> a = part_of(operands.a);
  const Columns<float> h = part_of(operands.h);
  const Columns<float> tau = part_of(operands.tau);
  const Columns<float> a_copy = staged(layout.a_offset, matrices);
  const Columns<float> h_copy = staged(layout.h_offset, matrices);
  const Columns<float> tau_copy = staged(layout.tau_offset, scales);

  if (layout.stage_a) copy_columns(a, a_copy, matrices);
  // Kernels only read A; the plan's interface has one pointer type for all tensors.
  void* const tensors[] = {layout.stage_a ? a_copy.data : const_cast<float*>(a.data),
                           layout.stage_h ? h_copy.data : h.data,
                           layout.stage_tau ? tau_copy.data : tau.data};
  plan.execute(tensors, workspace + layout.scratch_offset, team);
  if (layout.stage_h) copy_columns(h_copy, h, matrices);
  if (layout.stage_tau) copy_columns(tau_copy, tau, scales);
}

Status run(const Operands& operands, void* workspace, std::size_t workspace_bytes,
           ExecutorState& state) {
  const std::lock_guard lock(state.mutex);
  Layout layout = make_layout(operands, state.team.workers());
  const Plans plans = find_plans(state, operands.matrices, layout);
  if (plans.status != Status::ok) return plans.status;
  if (layout.bytes > 0 && (workspace == nullptr || workspace_bytes < layout.bytes))
    return Status::workspace_too_small;
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  std::byte* aligned =
      static_cast<std::byte*>(workspace) + (kAlignment - address % kAlignment) % kAlignment;
  const std::int64_t batch = operands.matrices.batch;
  for (std::int64_t first = 0; first < batch; first += layout.part) {
    const std::int64_t count = std::min(layout.part, batch - first);
    run_part(operands, layout, count == layout.part ? *plans.part : *plans.rest, aligned, first,
             count, state.team);
  }
  return Status::ok;
}

// The boundary that no exception crosses.
template <typename Function>
Status guarded(Function function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Status::out_of_memory;
  } catch (...) {
    return Status::internal_error;
  }
}

}  // namespace

Status geqrf(const Geqrf& call, void* workspace, std::size_t workspace_bytes,
             Executor& executor) noexcept {
  if (const Status status = check_sizes(call); status != Status::ok) return status;
  if (is_empty(call)) return Status::ok;
  const Operands operands = operands_of(call);
  if (const Status status = check_arrays(operands); status != Status::ok) return status;
  return guarded([&] { return run(operands, workspace, workspace_bytes, executor.state()); });
}

Status geqrf_workspace_bytes(const Geqrf& call, Executor& executor, std::size_t* bytes) noexcept {
  if (bytes == nullptr) return Status::null_pointer;
  *bytes = 0;
  if (const Status status = check_sizes(call); status != Status::ok) return status;
  if (is_empty(call)) return Status::ok;
  return guarded([&] {
    ExecutorState& state = executor.state();
    const std::lock_guard lock(state.mutex);
    const Operands operands = operands_of(call);
    Layout layout = make_layout(operands, state.team.workers());
    const Plans plans = find_plans(state, operands.matrices, layout);
    if (plans.status == Status::ok) *bytes = layout.bytes;
    return plans.status;
  });
}

Status find_geqrf_row(std::int64_t n, RowInfo* row) noexcept {
  if (row == nullptr) return Status::null_pointer;
  if (n < 1 || n > kGeqrfMostRows) return Status::bad_shape;
  const QrRow* chosen = choose_qr_row(qr_rows(), n);
  if (chosen == nullptr) return Status::not_supported;
  *row = {chosen->source, chosen->knobs, name_of(chosen->instruction_set), chosen->proof};
  return Status::ok;
}

}  // namespace kernelbeam
