// What a CUDA candidate says: which kernels are launched, on which buffers, in which order, for one
// shape. The plan function runs once a shape, without a GPU, and sees no data; only the recorded
// nodes run in a call, as one graph. See docs/cuda.md for a worked example.
#pragma once

#include <cuda.h>  // CUtensorMap and its enumerations; nothing of the driver is called
#include <kbeam/byte_counts.h>
#include <kbeam/launch_abi.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace kbeam {

// A place in device memory whose address is known only in a call. `+` counts elements. Passed to a
// launch it arrives as T*.
template <typename T>
struct DevicePointer {
  kbeam_pointer place{};
  DevicePointer operator+(std::int64_t elements) const {
    return {{place.buffer, detail::moved_by(place.offset_bytes, detail::bytes_of<T>(elements))}};
  }
  template <typename U>
  DevicePointer<U> as() const {
    return {place};
  }
  // As T* converts to const T*.
  template <typename Const, std::enable_if_t<std::is_same_v<Const, const T>, int> = 0>
  operator DevicePointer<Const>() const {  // NOLINT(google-explicit-constructor)
    return {place};
  }
};

// A problem tensor. `dim` and `stride` follow the order of the axes in problem.toml; strides count
// elements.
template <typename T>
struct DeviceTensor : DevicePointer<T> {
  kbeam_buffer buffer{};
  std::int64_t dim(int axis) const { return buffer.dim[axis]; }
  std::int64_t stride(int axis) const { return buffer.stride[axis]; }
};

struct TensorMap {  // arrives as `const __grid_constant__ CUtensorMap`
  std::int32_t id = -1;
};
struct Condition {  // arrives as cudaGraphConditionalHandle
  std::int32_t id = -1;
};
struct Node {
  std::int32_t id = -1;
};

// As the plan says it; whoever records the launch refuses what no launch can have.
struct Extent {
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  constexpr Extent() = default;
  template <std::integral X>
  constexpr Extent(X x_value)  // NOLINT(google-explicit-constructor): .grid = 132 reads well
      : x(held(x_value)) {}
  template <std::integral X, std::integral Y, std::integral Z = int>
  constexpr Extent(X x_value, Y y_value, Z z_value = 1)
      : x(held(x_value)), y(held(y_value)), z(held(z_value)) {}

 private:
  template <std::integral Value>
  static constexpr std::int64_t held(Value value) {
    return std::in_range<std::int64_t>(value) ? static_cast<std::int64_t>(value)
                                              : detail::kMostBytes;
  }
};

// What a node waits for. Left out, it is the node recorded before it.
class After {
 public:
  After() = default;
  After(std::initializer_list<Node> nodes) : given_(true) {  // {}: the start of the plan
    for (const Node& node : nodes) ids_.push_back(node.id);
  }
  explicit After(const std::vector<Node>& nodes) : given_(true) {
    for (const Node& node : nodes) ids_.push_back(node.id);
  }
  kbeam_after abi() const {
    return {ids_.data(), given_ ? static_cast<std::int32_t>(ids_.size()) : -1};
  }

 private:
  std::vector<std::int32_t> ids_;
  bool given_ = false;
};
inline After at_start() {
  return After(std::vector<Node>{});
}

struct LaunchShape {
  Extent grid;
  Extent block;
  Extent cluster{0, 0, 0};  // {0, 0, 0}: not given here
  std::int64_t shared_bytes = 0;
  bool cooperative = false;
  bool overlap_previous = false;  // programmatic dependent launch: the kernel waits by itself
  int shared_carveout_percent = -1;
  After after{};
};

// C = alpha op(A) op(B) + beta C, column-major, `batch` times; strides and leading dimensions in
// elements.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  kbeam_gemm_type type_a_b = KBEAM_GEMM_F32;
  kbeam_gemm_type type_c = KBEAM_GEMM_F32;
  kbeam_gemm_compute compute = KBEAM_COMPUTE_F32;
  double alpha = 1;
  double beta = 0;
  kbeam_pointer a{}, b{}, c{};  // .place of a DevicePointer
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  After after{};
};

// A tiled TMA descriptor, dimensions fastest first; `strides` count elements of T and begin with
// the second dimension.
template <typename T>
struct TensorTile {
  DevicePointer<T> base;
  std::vector<std::uint64_t> dims;
  std::vector<std::uint64_t> strides;
  std::vector<std::uint32_t> box;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
};

namespace detail {

template <typename Text>
const char* characters(const Text& text) {
  if constexpr (requires { text.c_str(); })
    return text.c_str();
  else
    return text;
}

template <typename T>
constexpr std::int32_t tensor_element_type() {
  using Element = std::remove_const_t<T>;
  static_assert(std::is_same_v<Element, float> || std::is_same_v<Element, double> ||
                    std::is_same_v<Element, std::int32_t> || std::is_same_v<Element, std::int64_t>,
                "a tensor holds float, double, int32_t or int64_t");
  if constexpr (std::is_same_v<Element, float>) return KBEAM_F32;
  if constexpr (std::is_same_v<Element, double>) return KBEAM_F64;
  if constexpr (std::is_same_v<Element, std::int32_t>) return KBEAM_I32;
  return KBEAM_I64;
}

template <typename T>
constexpr CUtensorMapDataType tensor_map_type() {
  if constexpr (std::is_same_v<std::remove_const_t<T>, float>)
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  if constexpr (std::is_same_v<std::remove_const_t<T>, double>)
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  if constexpr (sizeof(T) == 1) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if constexpr (sizeof(T) == 2) return CU_TENSOR_MAP_DATA_TYPE_UINT16;
  if constexpr (sizeof(T) == 4) return CU_TENSOR_MAP_DATA_TYPE_UINT32;
  return CU_TENSOR_MAP_DATA_TYPE_UINT64;
}

// A copy of a struct takes its padding along, whatever was there: zeroed, so that equal values are
// equal bytes and two plans of one shape are the same.
template <typename P>
void clear_padding([[maybe_unused]] P& value) {
#if defined(__GNUC__) && !defined(__clang__)
  __builtin_clear_padding(&value);
#endif
}

// One kernel parameter of type P made from what the plan passed for it. `storage` keeps the value
// until the launch is recorded.
template <typename P, typename T>
kbeam_argument bind_argument(P&, const DevicePointer<T>& pointer) {
  static_assert(std::is_pointer_v<P> && std::is_convertible_v<T*, P>,
                "the buffer's element type must match the kernel's pointer");
  return {KBEAM_ADDRESS, sizeof(P), nullptr, pointer.place, 0};
}
template <typename P, typename T>
kbeam_argument bind_argument(P& storage, const DeviceTensor<T>& tensor) {
  return bind_argument(storage, static_cast<const DevicePointer<T>&>(tensor));
}
template <typename P>
kbeam_argument bind_argument(P&, const TensorMap& map) {
  static_assert(std::is_same_v<P, CUtensorMap>, "a tensor map arrives as CUtensorMap");
  return {KBEAM_TENSOR_MAP, sizeof(P), nullptr, {}, map.id};
}
template <typename P>
kbeam_argument bind_argument(P&, const Condition& condition) {
  static_assert(sizeof(P) == 8, "a condition arrives as cudaGraphConditionalHandle");
  return {KBEAM_CONDITION, sizeof(P), nullptr, {}, condition.id};
}
template <typename P>
kbeam_argument bind_argument(P& storage, std::nullptr_t) {
  static_assert(std::is_pointer_v<P>, "nullptr is for pointer parameters");
  storage = nullptr;
  return {KBEAM_VALUE, sizeof(P), &storage, {}, 0};
}
template <typename P, typename V>
requires(!std::is_pointer_v<P> && std::is_convertible_v<V, P>) kbeam_argument
    bind_argument(P& storage, const V& value) {
  static_assert(std::is_trivially_copyable_v<P>, "kernel arguments are plain bytes");
  storage = static_cast<P>(value);
  clear_padding(storage);
  return {KBEAM_VALUE, sizeof(P), &storage, {}, 0};
}

}  // namespace detail

// The tensors and axis values of the shape that is being planned. An unknown name makes the plan
// `bad_plan`.
class Args {
 public:
  explicit Args(const kbeam_cuda_host* host) : host_(host) {}

  template <typename T>
  DeviceTensor<const T> input(const char* name) const {
    return find<const T>(name, KBEAM_INPUT);
  }
  template <typename T>
  DeviceTensor<T> output(const char* name) const {
    return find<T>(name, KBEAM_OUTPUT);
  }
  std::int64_t axis(const char* name) const { return host_->axis(host_->self, name); }

 protected:
  const kbeam_cuda_host* host() const { return host_; }

 private:
  template <typename T>
  DeviceTensor<T> find(const char* name, std::int32_t role) const {
    DeviceTensor<T> tensor;
    tensor.place.buffer = host_->find_buffer(host_->self, name, role,
                                             detail::tensor_element_type<T>(), &tensor.buffer);
    return tensor;
  }
  const kbeam_cuda_host* host_;
};

class Plan {
 public:
  using Arguments = Args;
  explicit Plan(const kbeam_cuda_host* host) : host_(host) {}

  const kbeam_device& device() const { return *host_->device; }

  // Memory for one call, 256-byte aligned. Its content at the start of a call is undefined.
  template <typename T>
  DevicePointer<T> scratch(std::int64_t count) {
    return {{host_->scratch(host_->self, detail::bytes_of<T>(count), 0), 0}};
  }
  // The same, all bytes zero at the start of every call. The clearing is part of the call and of
  // its time.
  template <typename T>
  DevicePointer<T> zeroed_scratch(std::int64_t count) {
    return {{host_->scratch(host_->self, detail::bytes_of<T>(count), 1), 0}};
  }
  // Constant data that the plan computed: read-only for the kernels, the same in every call.
  template <typename T>
  DevicePointer<const T> table(const std::vector<T>& content) {
    static_assert(std::is_trivially_copyable_v<T>, "a table holds plain values");
    return {{host_->table(host_->self, content.data(),
                          static_cast<std::int64_t>(content.size() * sizeof(T))),
             0}};
  }
  template <typename T>
  TensorMap tensor_map(const TensorTile<T>& tile) {
    kbeam_tensor_map request{};
    request.base = tile.base.place;
    request.data_type = detail::tensor_map_type<T>();
    request.rank = static_cast<std::int32_t>(tile.dims.size());
    for (std::size_t i = 0; i < tile.dims.size() && i < 5; ++i) {
      request.dim[i] = tile.dims[i];
      if (i > 0 && i - 1 < tile.strides.size())
        request.stride_bytes[i] = detail::stride_bytes<T>(tile.strides[i - 1]);
      if (i < tile.box.size()) request.box[i] = tile.box[i];
      request.element_stride[i] = 1;
    }
    request.swizzle = tile.swizzle;
    request.l2_promotion = tile.l2_promotion;
    return {host_->tensor_map(host_->self, &request)};
  }
  // A flag that a kernel of the plan sets with cudaGraphSetConditional; `initial` at the start of
  // every call.
  Condition condition(std::uint32_t initial = 0) {
    return {host_->condition(host_->self, initial)};
  }

  // Blocks of this kernel that are resident at once on one multiprocessor of device().
  template <typename... P>
  int resident_blocks(void (*kernel)(P...), int threads, std::int64_t shared_bytes) const {
    return host_->resident_blocks(host_->self, reinterpret_cast<const void*>(kernel), threads,
                                  shared_bytes);
  }

  template <typename... P, typename... A>
  Node launch(void (*kernel)(P...), const LaunchShape& shape, const A&... arguments) {
    static_assert(sizeof...(P) == sizeof...(A), "one argument for each kernel parameter");
    return launch_with(kernel, shape, std::index_sequence_for<P...>(), arguments...);
  }
  template <typename T>
  Node fill(DevicePointer<T> to, std::int64_t count, std::uint8_t byte, const After& after = {}) {
    return {host_->fill(host_->self, to.place, detail::bytes_of<T>(count), byte, after.abi())};
  }
  template <typename T>
  Node copy(DevicePointer<T> to, std::type_identity_t<DevicePointer<const T>> from,
            std::int64_t count, const After& after = {}) {
    return {
        host_->copy(host_->self, to.place, from.place, detail::bytes_of<T>(count), after.abi())};
  }
  Node gemm(const Gemm& gemm) {
    const kbeam_gemm request{
        gemm.transpose_a, gemm.transpose_b, gemm.m,          gemm.n,     gemm.k,    gemm.batch,
        gemm.type_a_b,    gemm.type_c,      gemm.compute,    gemm.alpha, gemm.beta, gemm.a,
        gemm.b,           gemm.c,           gemm.lda,        gemm.ldb,   gemm.ldc,  gemm.stride_a,
        gemm.stride_b,    gemm.stride_c,    gemm.after.abi()};
    return {host_->gemm(host_->self, &request)};
  }
  // Baselines only: a routine of a vendor's library.
  Node vendor_call(const char* routine, const std::vector<kbeam_pointer>& pointers,
                   const std::vector<std::int64_t>& numbers, const After& after = {}) {
    const kbeam_vendor_call request{routine,
                                    pointers.data(),
                                    static_cast<std::uint32_t>(pointers.size()),
                                    numbers.data(),
                                    static_cast<std::uint32_t>(numbers.size()),
                                    after.abi()};
    return {host_->vendor_call(host_->self, &request)};
  }
  // Records what `then` (and `otherwise`) record as the bodies of a conditional node.
  template <typename Then>
  Node when(Condition condition, Then then, const After& after = {}) {
    const Node node{host_->begin_if(host_->self, condition.id, 0, after.abi())};
    then();
    host_->end_if(host_->self);
    return node;
  }
  template <typename Then, typename Otherwise>
  requires std::invocable<Otherwise> Node when(Condition condition, Then then, Otherwise otherwise,
                                               const After& after = {}) {
    const Node node{host_->begin_if(host_->self, condition.id, 1, after.abi())};
    then();
    host_->begin_else(host_->self);
    otherwise();
    host_->end_if(host_->self);
    return node;
  }

  // A fact for the record; a std::string or const char* (<string> costs a build half a second).
  template <typename Text>
  void note(const char* key, const Text& value) {
    host_->note(host_->self, key, detail::characters(value));
  }
  // This candidate does not serve this shape or device; says why. Not an error of the candidate.
  template <typename Text>
  void not_supported(const Text& why) {
    host_->fail(host_->self, KBEAM_NOT_SUPPORTED, detail::characters(why));
  }

 protected:
  const kbeam_cuda_host* host() const { return host_; }

 private:
  template <typename... P, std::size_t... I, typename... A>
  Node launch_with(void (*kernel)(P...), const LaunchShape& shape, std::index_sequence<I...>,
                   const A&... arguments) {
    std::tuple<std::array<std::remove_const_t<P>, 1>...> storage;
    (std::memset(static_cast<void*>(std::get<I>(storage).data()), 0, sizeof(std::get<I>(storage))),
     ...);
    const kbeam_argument bound[sizeof...(P) + 1] = {
        detail::bind_argument(std::get<I>(storage)[0], arguments)..., kbeam_argument{}};
    const kbeam_launch request{reinterpret_cast<const void*>(kernel),
                               {shape.grid.x, shape.grid.y, shape.grid.z},
                               {shape.block.x, shape.block.y, shape.block.z},
                               {shape.cluster.x, shape.cluster.y, shape.cluster.z},
                               shape.shared_bytes,
                               shape.cooperative,
                               shape.overlap_previous,
                               shape.shared_carveout_percent,
                               shape.after.abi(),
                               bound,
                               sizeof...(P)};
    return {host_->launch(host_->self, &request)};
  }
  const kbeam_cuda_host* host_;
};

}  // namespace kbeam

#ifndef KBEAM_ENTRY
#define KBEAM_ENTRY kbeam_candidate_plan
#endif

// KBEAM_PLAN(plan, args) { ... } describes the launches for one shape. Everything else in a
// candidate file lives in an anonymous namespace or is static: rows of one file with other knob
// values are linked side by side.
#define KBEAM_PLAN(plan, args) KBEAM_CUDA_PLAN_NAMED(KBEAM_ENTRY, ::kbeam::Plan, plan, args)

#define KBEAM_CUDA_PLAN_NAMED(entry, PlanType, plan, args)                                       \
  static void KBEAM_JOIN_NAMES(kbeam_describe_, entry)(PlanType & plan,                          \
                                                       const PlanType::Arguments& args);         \
  extern "C" __attribute__((visibility("default"))) void entry(const kbeam_cuda_host* kbeam_h) { \
    if (kbeam_h->abi != KBEAM_CUDA_ABI) {                                                        \
      kbeam_h->fail(kbeam_h->self, KBEAM_BAD_PLAN, "built for another version of the contract"); \
      return;                                                                                    \
    }                                                                                            \
    PlanType kbeam_plan_object(kbeam_h);                                                         \
    const PlanType::Arguments kbeam_args_object(kbeam_h);                                        \
    KBEAM_JOIN_NAMES(kbeam_describe_, entry)(kbeam_plan_object, kbeam_args_object);              \
  }                                                                                              \
  static void KBEAM_JOIN_NAMES(kbeam_describe_, entry)(                                          \
      [[maybe_unused]] PlanType & plan, [[maybe_unused]] const PlanType::Arguments& args)
#define KBEAM_JOIN_NAMES(a, b) KBEAM_JOIN_NAMES_NOW(a, b)
#define KBEAM_JOIN_NAMES_NOW(a, b) a##b
