#include "target/cuda/plan_indices.h"

#include <cuda.h>
#include <fmt/core.h>

#include <algorithm>

namespace kbeam {
namespace {

class PlaceChecker {
 public:
  explicit PlaceChecker(const LaunchPlan& plan) : plan_(plan) {}
  bool inside(const BufferPlace& place, std::int64_t bytes) const {
    if (place.buffer < 0 || place.buffer >= static_cast<int>(plan_.buffers.size())) return false;
    const std::int64_t size = plan_.buffers[static_cast<std::size_t>(place.buffer)].bytes;
    return place.offset_bytes >= 0 && bytes >= 0 && place.offset_bytes <= size &&
           bytes <= size - place.offset_bytes;
  }

 private:
  const LaunchPlan& plan_;
};

std::string argument_mistake(const LaunchPlan& plan, const PlanArgument& argument,
                             const std::set<int>& conditions) {
  switch (argument.kind) {
    case KBEAM_VALUE:
      return argument.value.size() == argument.size ? "" : "a value of another size than it says";
    case KBEAM_ADDRESS:
      if (argument.size != sizeof(CUdeviceptr)) return "an address that is not 8 bytes";
      return PlaceChecker(plan).inside(argument.address, 0) ? "" : "an address outside its buffer";
    case KBEAM_TENSOR_MAP:
      if (argument.size != sizeof(CUtensorMap)) return "a tensor map of a wrong size";
      return argument.id >= 0 && argument.id < static_cast<int>(plan.tensor_maps.size())
                 ? ""
                 : "an unknown tensor map";
    case KBEAM_CONDITION:
      if (argument.size != sizeof(CUgraphConditionalHandle))
        return "a condition that is not 8 bytes";
      return conditions.contains(argument.id) ? "" : "a condition that no conditional node uses";
  }
  return "an argument of an unknown kind";
}

std::string node_mistake(const LaunchPlan& plan, int index, const std::set<int>& conditions) {
  const PlanNode& node = plan.nodes[static_cast<std::size_t>(index)];
  const PlaceChecker places(plan);
  for (const int before : node.after)
    if (before < 0 || before >= index ||
        plan.nodes[static_cast<std::size_t>(before)].body != node.body)
      return "waits for a node that does not come before it in the same body";
  if (node.body != -1) {
    const int owner = node.body / 2;
    if (node.body < -1 || owner >= index ||
        plan.nodes[static_cast<std::size_t>(owner)].kind != NodeKind::conditional ||
        (node.body % 2 == 1 && !plan.nodes[static_cast<std::size_t>(owner)].has_otherwise))
      return "belongs to a body that no conditional node has";
  }
  switch (node.kind) {
    case NodeKind::kernel:
      for (const PlanArgument& argument : node.arguments)
        if (std::string mistake = argument_mistake(plan, argument, conditions); !mistake.empty())
          return "has " + mistake;
      return "";
    case NodeKind::fill:
      return places.inside(node.to, node.bytes) ? "" : "fills outside its buffer";
    case NodeKind::copy:
      return places.inside(node.to, node.bytes) && places.inside(node.from, node.bytes)
                 ? ""
                 : "copies outside a buffer";
    case NodeKind::gemm:
      return places.inside(node.gemm.a, 0) && places.inside(node.gemm.b, 0) &&
                     places.inside(node.gemm.c, 0)
                 ? ""
                 : "multiplies outside a buffer";
    case NodeKind::vendor_call:
      return std::all_of(node.pointers.begin(), node.pointers.end(),
                         [&](const BufferPlace& place) { return places.inside(place, 0); })
                 ? ""
                 : "passes an address outside a buffer";
    case NodeKind::conditional:
      return node.condition >= 0 && node.condition < static_cast<int>(plan.conditions.size())
                 ? ""
                 : "has an unknown condition";
  }
  return "is of an unknown kind";
}

}  // namespace

std::set<int> used_conditions(const LaunchPlan& plan) {
  std::set<int> used;
  for (const PlanNode& node : plan.nodes)
    if (node.kind == NodeKind::conditional) used.insert(node.condition);
  return used;
}

std::string find_index_mistake(const LaunchPlan& plan) {
  const std::set<int> conditions = used_conditions(plan);
  for (std::size_t i = 0; i < plan.tensor_maps.size(); ++i) {
    const PlanTensorMap& map = plan.tensor_maps[i];
    if (map.rank < 1 || map.rank > 5 || !PlaceChecker(plan).inside(map.base, 0))
      return fmt::format("tensor map {} has a wrong rank or base", i);
  }
  for (int i = 0; i < static_cast<int>(plan.nodes.size()); ++i)
    if (std::string mistake = node_mistake(plan, i, conditions); !mistake.empty())
      return fmt::format("node {} {}", i, mistake);
  return "";
}

}  // namespace kbeam
