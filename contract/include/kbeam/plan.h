// What a CPU candidate says: which functions run, on which buffers, in which order, for one shape.
// The plan function runs once a shape and sees no data; only the recorded steps run in a call.
#pragma once

#include <kbeam/byte_counts.h>
#include <kbeam/plan_abi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

namespace kbeam {

// Work items [begin, end) of a parallel_for, on worker `worker` of plan.workers().
struct Range {
  std::int64_t begin;
  std::int64_t end;
  std::int32_t worker;
};

// A problem tensor whose address is known only in a call. Passed to plan.call it arrives as T*.
// `dim` and `stride` follow the order of the axes in problem.toml; strides count elements.
template <typename T>
struct Tensor {
  kbeam_buffer buffer;
  std::int64_t dim(int axis) const { return buffer.dim[axis]; }
  std::int64_t stride(int axis) const { return buffer.stride[axis]; }
};

// Memory that the host allocates, 64-byte aligned, with undefined content at the start of every
// call.
template <typename T>
struct Scratch {
  std::int32_t id;
};

// The same, but every worker sees a copy of its own.
template <typename T>
struct WorkerScratch {
  std::int32_t id;
  std::int64_t stride_bytes;
};

namespace detail {

template <typename T>
constexpr std::int32_t element_type() {
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
const T& resolve(const T& value, void* const*, std::int32_t) {
  return value;
}
template <typename T>
T* resolve(const Tensor<T>& tensor, void* const* buffers, std::int32_t) {
  return static_cast<T*>(buffers[tensor.buffer.id]);
}
template <typename T>
T* resolve(const Scratch<T>& scratch, void* const* buffers, std::int32_t) {
  return static_cast<T*>(buffers[scratch.id]);
}
template <typename T>
T* resolve(const WorkerScratch<T>& scratch, void* const* buffers, std::int32_t worker) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(buffers[scratch.id]) +
                              worker * scratch.stride_bytes);
}

// A function and its arguments as plain bytes: the host copies them and hands them back in every
// call. Plans are compared byte by byte, so the gaps between arguments are zeroed (a std::tuple
// would leave them undefined).
template <typename Function, typename... Arguments>
class Closure {
  static_assert((std::is_trivially_copyable_v<Arguments> && ...),
                "plan arguments are numbers, plain structs, tensors and scratch; nothing that owns "
                "memory");
  static_assert(((alignof(Arguments) <= 16) && ...),
                "plan arguments are stored 16-byte aligned: pass a wide vector by its numbers");

 public:
  Closure(Function* function, const Arguments&... arguments) : function_(function) {
    std::memset(bytes_, 0, sizeof bytes_);
    std::size_t index = 0;
    (std::memcpy(bytes_ + kOffsets[index++], &arguments, sizeof arguments), ...);
  }

  static void call_once(const void* self, void* const* buffers, std::int64_t, std::int64_t,
                        std::int32_t worker) {
    static_cast<const Closure*>(self)->apply(buffers, worker,
                                             std::index_sequence_for<Arguments...>());
  }
  static void call_range(const void* self, void* const* buffers, std::int64_t begin,
                         std::int64_t end, std::int32_t worker) {
    static_cast<const Closure*>(self)->apply(
        buffers, worker, std::index_sequence_for<Arguments...>(), Range{begin, end, worker});
  }

 private:
  // Where each argument starts, and after the last one where they end.
  static constexpr std::array<std::size_t, sizeof...(Arguments) + 1> kOffsets = [] {
    std::array<std::size_t, sizeof...(Arguments) + 1> offsets{};
    std::size_t index = 0;
    std::size_t end = 0;
    ((end = (end + alignof(Arguments) - 1) / alignof(Arguments) * alignof(Arguments),
      offsets[index++] = end, end += sizeof(Arguments)),
     ...);
    offsets[index] = end;
    return offsets;
  }();

  template <std::size_t... kIndex, typename... First>
  void apply([[maybe_unused]] void* const* buffers, [[maybe_unused]] std::int32_t worker,
             std::index_sequence<kIndex...>, First... first) const {
    function_(first...,
              resolve(*std::launder(reinterpret_cast<const Arguments*>(bytes_ + kOffsets[kIndex])),
                      buffers, worker)...);
  }

  Function* function_;
  std::size_t unused_ = 0;  // keeps what follows 16-byte aligned without a gap
  alignas(16) std::byte bytes_[(kOffsets.back() + 16) / 16 * 16];
};

}  // namespace detail

// The tensors and axis values of the shape that is being planned. An unknown name makes the plan
// `bad_plan`.
class Args {
 public:
  explicit Args(const kbeam_host* host) : host_(host) {}

  template <typename T>
  Tensor<const T> input(const char* name) const {
    return find<const T>(name, KBEAM_INPUT);
  }
  template <typename T>
  Tensor<T> output(const char* name) const {
    return find<T>(name, KBEAM_OUTPUT);
  }
  std::int64_t axis(const char* name) const { return host_->axis(host_->self, name); }

 private:
  template <typename T>
  Tensor<T> find(const char* name, std::int32_t role) const {
    Tensor<T> tensor{};
    host_->find_buffer(host_->self, name, role, detail::element_type<T>(), &tensor.buffer);
    return tensor;
  }
  const kbeam_host* host_;
};

class Plan {
 public:
  explicit Plan(const kbeam_host* host) : host_(host) {}

  int workers() const { return host_->workers; }

  template <typename T>
  Scratch<T> scratch(std::int64_t count) {
    return {host_->scratch(host_->self, detail::bytes_of<T>(count), 1)};
  }
  // Copies are 128 bytes apart at least, so that workers do not share cache lines.
  template <typename T>
  WorkerScratch<T> worker_scratch(std::int64_t count) {
    const std::int64_t stride = detail::rounded_up(detail::bytes_of<T>(count), 128);
    return {host_->scratch(host_->self, stride, host_->workers), stride};
  }

  // Runs `function(arguments...)` once, on one worker.
  template <typename... Parameters, typename... Arguments>
  void call(void (*function)(Parameters...), Arguments... arguments) {
    using Closure = detail::Closure<void(Parameters...), Arguments...>;
    const Closure closure(function, arguments...);
    const kbeam_step step{&Closure::call_once, &closure, sizeof closure, 1, 1};
    host_->add_step(host_->self, &step);
  }

  // Runs `function(Range, arguments...)` over [0, count): `grain` items at a time, as workers come
  // free; grain 0 gives every worker one equal share.
  template <typename... Parameters, typename... Arguments>
  void parallel_for(std::int64_t count, std::int64_t grain, void (*function)(Range, Parameters...),
                    Arguments... arguments) {
    using Closure = detail::Closure<void(Range, Parameters...), Arguments...>;
    const Closure closure(function, arguments...);
    const kbeam_step step{&Closure::call_range, &closure, sizeof closure, count, grain};
    host_->add_step(host_->self, &step);
  }

  // A fact for the record, such as the core that a library chose.
  void note(const char* key, const std::string& value) {
    host_->note(host_->self, key, value.c_str());
  }
  // Equal inputs may give results that differ within the problem's limits, because of `why`: sums
  // in the order in which workers come free. Without this a promotion asks for the same bits.
  void may_vary(const std::string& why) { note("may_vary", why); }
  // This candidate does not run here or on this shape; says why. Not an error of the candidate.
  void not_supported(const std::string& why) {
    host_->fail(host_->self, KBEAM_NOT_SUPPORTED, why.c_str());
  }

 private:
  const kbeam_host* host_;
};

}  // namespace kbeam

// The name of the one symbol that a candidate exports; the library gives each row its own.
#ifndef KBEAM_ENTRY
#define KBEAM_ENTRY kbeam_candidate_plan
#endif

// KBEAM_PLAN(plan, args) { ... } describes the work for one shape. Everything else in a candidate
// file lives in an anonymous namespace or is static: rows of one file with other knob values are
// linked side by side.
#define KBEAM_PLAN(plan, args)                                                                    \
  static void kbeam_describe(::kbeam::Plan& plan, const ::kbeam::Args& args);                     \
  extern "C" __attribute__((visibility("default"))) void KBEAM_ENTRY(const kbeam_host* kbeam_h) { \
    if (kbeam_h->abi != KBEAM_ABI) {                                                              \
      kbeam_h->fail(kbeam_h->self, KBEAM_BAD_PLAN, "built for another version of the contract");  \
      return;                                                                                     \
    }                                                                                             \
    ::kbeam::Plan kbeam_plan_object(kbeam_h);                                                     \
    const ::kbeam::Args kbeam_args_object(kbeam_h);                                               \
    kbeam_describe(kbeam_plan_object, kbeam_args_object);                                         \
  }                                                                                               \
  static void kbeam_describe([[maybe_unused]] ::kbeam::Plan& plan,                                \
                             [[maybe_unused]] const ::kbeam::Args& args)
