// A plan that runs at once on the emulated device: what kbeam::Plan and ProblemPlan offer, as far
// as this problem and its candidates use it. Scratch holds NaN where the real one is undefined.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "emulated_device.h"

namespace kbeam {

template <typename T>
struct EmulatedPointer {
  T* address = nullptr;
  EmulatedPointer operator+(std::int64_t elements) const { return {address + elements}; }
  template <typename U>
  EmulatedPointer<U> as() const {
    return {reinterpret_cast<U*>(address)};
  }
  operator T*() const { return address; }
  template <typename Const, std::enable_if_t<std::is_same_v<Const, const T>, int> = 0>
  operator EmulatedPointer<Const>() const {
    return {address};
  }
};

template <typename T>
struct EmulatedTensor : EmulatedPointer<T> {
  std::int64_t dims[KBEAM_MAX_RANK] = {};
  std::int64_t dim(int axis) const { return dims[axis]; }
};

struct EmulatedMemory {
  std::map<std::string, float*> tensors;
  std::map<std::string, std::vector<std::int64_t>> dims;
};

class EmulatedArgs {
 public:
  EmulatedMemory memory;
  std::map<std::string, std::int64_t> axes;
  std::map<std::string, std::string> texts;

  template <typename T>
  EmulatedTensor<const T> input(const char* name) const {
    return find<const T>(name);
  }
  template <typename T>
  EmulatedTensor<T> output(const char* name) const {
    return find<T>(name);
  }
  std::int64_t axis(const char* name) const { return axes.at(name); }
  std::string text(const char* key) const { return texts.at(key); }

 private:
  template <typename T>
  EmulatedTensor<T> find(const char* name) const {
    static_assert(std::is_same_v<std::remove_const_t<T>, float>);
    EmulatedTensor<T> tensor;
    tensor.address = memory.tensors.at(name);
    const std::vector<std::int64_t>& dims = memory.dims.at(name);
    std::copy(dims.begin(), dims.end(), tensor.dims);
    return tensor;
  }
};

struct EmulatedFigure {
  FigureSpec spec;
  std::unique_ptr<FigureCell> cell = std::make_unique<FigureCell>(0);

  double value() const { return std::bit_cast<float>(static_cast<unsigned>(*cell >> 32)); }
  bool passed() const { return value() <= spec.limit; }
  std::string where() const {
    auto index = static_cast<std::uint32_t>(*cell);
    std::string words;
    for (auto radix = spec.where.rbegin(); radix != spec.where.rend(); ++radix) {
      const auto part = static_cast<std::uint32_t>(index % radix->second);
      index = static_cast<std::uint32_t>(index / radix->second);
      words = radix->first + " " + std::to_string(part) + (words.empty() ? "" : ", ") + words;
    }
    return words;
  }
};

class EmulatedPlan {
 public:
  struct EmulatedCondition {
    std::shared_ptr<unsigned> value = std::make_shared<unsigned>(0);
    operator cudaGraphConditionalHandle() const {
      return reinterpret_cast<cudaGraphConditionalHandle>(value.get());
    }
  };

  Control control_values{};
  std::vector<EmulatedFigure> figures;
  std::string refusal;  // why the plan is not supported
  int launches = 0;

  template <typename T>
  EmulatedPointer<T> scratch(std::int64_t count) {
    return take<T>(count, 0xff);
  }
  template <typename T>
  EmulatedPointer<T> zeroed_scratch(std::int64_t count) {
    return take<T>(count, 0);
  }
  EmulatedPointer<const Control> control(const EmulatedArgs&) const { return {&control_values}; }
  EmulatedPointer<FigureCell> figure(const FigureSpec& spec) {
    figures.push_back({spec});
    return {figures.back().cell.get()};
  }
  // An H200.
  const kbeam_device& device() const {
    static const kbeam_device device{.multiprocessors = 132,
                                     .architecture = 90,
                                     .shared_bytes_per_block = 232448,
                                     .shared_bytes_per_multiprocessor = 233472,
                                     .registers_per_multiprocessor = 65536,
                                     .threads_per_multiprocessor = 2048,
                                     .l2_bytes = 62914560,
                                     .resident_clusters = {}};
    return device;
  }
  template <typename... P, typename... A>
  Node launch(void (*kernel)(P...), const LaunchShape& shape, const A&... arguments) {
    static_assert(sizeof...(P) == sizeof...(A));
    if (shape.shared_bytes > device().shared_bytes_per_block)
      throw std::logic_error("more shared memory than a block may have");
    const std::tuple<std::remove_const_t<P>...> values(static_cast<P>(arguments)...);
    run_emulated_grid(shape, [&] { std::apply(kernel, values); });
    return {launches++};
  }
  template <typename T>
  void copy(EmulatedPointer<T> to, std::type_identity_t<EmulatedPointer<const T>> from,
            std::int64_t count) {
    std::copy_n(from.address, count, to.address);
  }
  template <typename T>
  void fill(EmulatedPointer<T> to, std::int64_t count, std::uint8_t byte) {
    std::memset(to.address, byte, static_cast<std::size_t>(count) * sizeof(T));
  }
  EmulatedCondition condition() { return {}; }
  template <typename Then>
  void when(const EmulatedCondition& condition, Then then) {
    if (*condition.value != 0) then();
  }
  void note(const char*, const std::string&) {}
  void not_supported(const std::string& why) { refusal = why; }

 private:
  template <typename T>
  EmulatedPointer<T> take(std::int64_t count, int byte) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    memory_.push_back(std::make_unique<std::uint64_t[]>(bytes / 8 + 1));
    std::memset(memory_.back().get(), byte, bytes);
    return {reinterpret_cast<T*>(memory_.back().get())};
  }
  std::vector<std::unique_ptr<std::uint64_t[]>> memory_;
};

}  // namespace kbeam
