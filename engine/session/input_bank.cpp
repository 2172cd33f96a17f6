#include "session/input_bank.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "problem/problem_library.h"

namespace kbeam {

void InputBank::AlignedFree::operator()(void* memory) const {
  std::free(memory);
}

TensorView make_view(const TensorShape& shape, void* data) {
  TensorView view;
  view.name = shape.name;
  view.type = shape.type;
  view.rank = static_cast<int>(shape.dims.size());
  std::copy(shape.dims.begin(), shape.dims.end(), view.dim);
  std::copy(shape.strides.begin(), shape.strides.end(), view.stride);
  view.elements = shape.elements();
  view.data = data;
  return view;
}

std::span<const TensorView> InputBank::inputs_for(const Case& the_case, std::uint64_t seed) {
  Entry& entry = entries_[{the_case.name, seed}];
  if (!entry.views.empty()) return entry.views;
  for (TensorShape& shape : tensor_shapes(problem_, the_case.axes))
    if (shape.role == KBEAM_INPUT) entry.shapes.push_back(std::move(shape));
  for (const TensorShape& shape : entry.shapes) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t bytes =
        (static_cast<std::size_t>(shape.bytes()) / kAlignment + 1) * kAlignment;
    void* const memory = std::aligned_alloc(kAlignment, bytes);
    CHECK(memory != nullptr, "memory for the inputs of a case");
    entry.memory.emplace_back(memory);
    entry.views.push_back(make_view(shape, memory));
  }
  code_.generate(CaseAdapter(the_case), seed, entry.views);
  return entry.views;
}

void InputBank::forget(std::uint64_t seed) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.first.second == seed; });
}

}  // namespace kbeam
