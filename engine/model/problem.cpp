#include "model/problem.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace kbeam {
namespace {

std::int64_t axis_value(const AxisValues& axes, const std::string& name) {
  const auto found = axes.find(name);
  CHECK(found != axes.end(), "every axis of a validated problem has a value in every case");
  return found->second;
}

}  // namespace

const Case* Problem::find_case(const std::string& case_name) const {
  const auto found = std::ranges::find(cases, case_name, &Case::name);
  return found == cases.end() ? nullptr : &*found;
}

std::vector<Case> Problem::timed_cases() const {
  std::vector<Case> timed;
  std::ranges::copy_if(cases, std::back_inserter(timed), &Case::timed);
  return timed;
}

bool serves(const Targets& targets, std::string_view target) {
  return targets.empty() || std::ranges::find(targets, target) != targets.end();
}

Problem for_target(const Problem& problem, std::string_view target) {
  Problem seen = problem;
  const auto foreign = [target](const auto& one) { return !serves(one.targets, target); };
  std::erase_if(seen.cases, foreign);
  std::erase_if(seen.baselines, foreign);
  std::erase_if(seen.ceilings, foreign);
  std::erase_if(seen.families, [&seen](const FamilySpec& family) {
    return std::ranges::find(seen.cases, family.name, &Case::family) == seen.cases.end();
  });
  std::erase_if(seen.targets, [target](const std::string& one) { return one != target; });
  if (const auto hash = problem.target_hashes.find(std::string(target));
      hash != problem.target_hashes.end())
    seen.content_hash = hash->second;
  return seen;
}

std::int64_t TensorShape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

std::int64_t TensorShape::bytes() const {
  const bool eight = type == KBEAM_F64 || type == KBEAM_I64;
  return elements() * (eight ? 8 : 4);
}

std::vector<TensorShape> tensor_shapes(const Problem& problem, const AxisValues& axes) {
  std::vector<TensorShape> shapes;
  for (const TensorSpec& spec : problem.tensors) {
    TensorShape shape{spec.name, spec.role, spec.type, {}, {}};
    for (const std::string& axis : spec.shape) shape.dims.push_back(axis_value(axes, axis));
    shape.strides.assign(spec.shape.size(), 1);
    const std::vector<std::string>& order =
        spec.memory_order.empty() ? spec.shape : spec.memory_order;
    CHECK(order.size() == spec.shape.size(), "memory_order names every axis of the shape once");
    std::int64_t stride = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      const auto position = std::ranges::find(spec.shape, *axis);
      CHECK(position != spec.shape.end(), "memory_order names only axes of the shape");
      const auto index = static_cast<std::size_t>(position - spec.shape.begin());
      shape.strides[index] = stride;
      stride *= shape.dims[index];
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace kbeam
