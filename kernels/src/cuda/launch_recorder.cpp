#include "cuda/launch_recorder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace kernelbeam::cuda {
namespace {

constexpr std::int64_t kAlignment = 256;
constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMostScratch = std::int64_t{1} << 46;  // 64 TiB, as for a CPU plan
constexpr std::size_t kArgumentAlignment = 64;                // what a CUtensorMap wants

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The host's side of the contract between a plan function and whoever records it.
class Recorder {
 public:
  Recorder(const PlanShape& shape, const PlanDevice& device) : shape_(shape), device_(device) {
    for (const PlanTensor& tensor : shape.tensors) {
      std::int64_t bytes = sizeof(float);
      for (int i = 0; i < tensor.shape.rank; ++i) bytes *= tensor.shape.dim[i];
      plan_.buffers.push_back({bytes, -1});
    }
  }

  RecordedPlan run(kbeam_cuda_plan_function* function) {
    const kbeam_cuda_host host = interface();
    function(&host);
    place_scratch();
    if (plan_.error.empty()) assign_lanes();
    return std::move(plan_);
  }

 private:
  kbeam_cuda_host interface() {
    kbeam_cuda_host host{};
    host.abi = KBEAM_CUDA_ABI;
    host.self = this;
    host.device = &device_.description;
    host.find_buffer = [](void* self, const char* name, std::int32_t role, std::int32_t type,
                          kbeam_buffer* found) {
      return as(self).find_buffer(name, role, type, *found);
    };
    host.axis = [](void* self, const char* name) { return as(self).axis(name); };
    host.text = [](void* self, const char*) {
      as(self).refuse("asks for a text, which only plans of a problem have");
      return "";
    };
    host.scratch = [](void* self, std::int64_t bytes, std::int32_t zeroed) {
      return as(self).scratch(bytes, zeroed != 0);
    };
    host.table = [](void* self, const void*, std::int64_t) {
      return as(self).refuse("holds a table, which the library does not keep on the device");
    };
    host.tensor_map = [](void* self, const kbeam_tensor_map* request) {
      RecordedPlan& plan = as(self).plan_;
      plan.tensor_maps.push_back(*request);
      return static_cast<std::int32_t>(plan.tensor_maps.size() - 1);
    };
    host.condition = [](void* self, std::uint32_t) {
      return as(self).refuse("uses a condition, which cannot ship");
    };
    host.figure = [](void* self, const kbeam_figure*, kbeam_pointer*) {
      return as(self).refuse("has a figure, which only plans of a problem have");
    };
    host.resident_blocks = [](void* self, const void* kernel, std::int32_t threads,
                              std::int64_t shared_bytes) -> std::int32_t {
      return as(self).device_.resident_blocks(kernel, threads, shared_bytes);
    };
    host.launch = [](void* self, const kbeam_launch* launch) { return as(self).launch(*launch); };
    host.fill = [](void* self, kbeam_pointer to, std::int64_t bytes, std::uint32_t value,
                   kbeam_after after) {
      PlanNode node{.kind = PlanNode::Kind::fill};
      node.to = to;
      node.count = bytes;
      node.byte_value = static_cast<std::uint8_t>(value);
      return as(self).add(std::move(node), after);
    };
    host.copy = [](void* self, kbeam_pointer to, kbeam_pointer from, std::int64_t bytes,
                   kbeam_after after) {
      PlanNode node{.kind = PlanNode::Kind::copy};
      node.to = to;
      node.from = from;
      node.count = bytes;
      return as(self).add(std::move(node), after);
    };
    host.gemm = [](void* self, const kbeam_gemm*) {
      return as(self).refuse("calls a library's product, which cannot ship");
    };
    host.vendor_call = [](void* self, const kbeam_vendor_call*) {
      return as(self).refuse("calls a vendor's routine, which cannot ship");
    };
    host.begin_if = [](void* self, std::int32_t, std::int32_t, kbeam_after) {
      return as(self).refuse("uses a condition, which cannot ship");
    };
    host.begin_else = [](void*) {};
    host.end_if = [](void*) {};
    host.note = [](void*, const char*, const char*) {};
    host.fail = [](void* self, std::int32_t kind, const char* message) {
      RecordedPlan& plan = as(self).plan_;
      if (!plan.error.empty()) return;
      plan.error = message;
      plan.not_supported = kind == KBEAM_NOT_SUPPORTED;
    };
    return host;
  }
  static Recorder& as(void* self) { return *static_cast<Recorder*>(self); }

  std::int32_t refuse(const char* why) {
    if (plan_.error.empty()) plan_.error = std::string("the plan ") + why;
    return 0;
  }

  std::int32_t find_buffer(const char* name, std::int32_t role, std::int32_t type,
                           kbeam_buffer& found) {
    for (const PlanTensor& tensor : shape_.tensors)
      if (std::strcmp(tensor.name, name) == 0 && tensor.role == role && type == KBEAM_F32) {
        found = tensor.shape;
        found.id = static_cast<std::int32_t>(&tensor - shape_.tensors.data());
        return found.id;
      }
    return refuse("asks for a tensor that the operation does not have");
  }

  std::int64_t axis(const char* name) {
    for (const auto& [known, value] : shape_.axes)
      if (std::strcmp(known, name) == 0) return value;
    return refuse("asks for an axis that the operation does not have");
  }

  std::int32_t scratch(std::int64_t bytes, bool zeroed) {
    if (bytes < 0) return refuse("asks for scratch of a negative size");
    if (bytes > kMostScratch - scratch_bytes_) return refuse("asks for scratch beyond 64 TiB");
    scratch_bytes_ += aligned(bytes);
    plan_.buffers.push_back({bytes, 0});
    is_zeroed_.resize(plan_.buffers.size());
    is_zeroed_.back() = zeroed;
    return static_cast<std::int32_t>(plan_.buffers.size() - 1);
  }

  static bool hold(const std::int64_t (&given)[3], std::uint32_t (&held)[3]) {
    if (std::any_of(given, given + 3, [](std::int64_t one) { return one < 0 || one > kMost32; }))
      return false;
    std::copy_n(given, 3, held);
    return true;
  }

  std::int32_t launch(const kbeam_launch& launch) {
    PlanNode node{.kind = PlanNode::Kind::kernel, .kernel = launch.kernel};
    if (!hold(launch.grid, node.grid) || !hold(launch.block, node.block) ||
        !hold(launch.cluster, node.cluster) || launch.dynamic_shared_bytes < 0 ||
        launch.dynamic_shared_bytes > kMost32)
      return refuse("has a launch of a size that no device has");
    node.shared_bytes = static_cast<decltype(node.shared_bytes)>(launch.dynamic_shared_bytes);
    node.cooperative = launch.cooperative != 0;
    node.overlap_previous = launch.overlap_previous != 0;
    node.shared_carveout_percent = launch.shared_carveout_percent;
    for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
      const kbeam_argument& given = launch.arguments[i];
      if (given.kind == KBEAM_CONDITION) return refuse("uses a condition, which cannot ship");
      const std::size_t at =
          (node.bytes.size() + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
      node.bytes.resize(at + given.size);
      if (given.kind == KBEAM_VALUE && given.value != nullptr)
        std::memcpy(node.bytes.data() + at, given.value, given.size);
      node.arguments.push_back({given.kind, at, given.address, given.id});
    }
    return add(std::move(node), launch.after);
  }

  std::int32_t add(PlanNode node, const kbeam_after& after) {
    const auto id = static_cast<std::int32_t>(plan_.nodes.size());
    if (after.count < 0 && id > 0) node.after = {id - 1};
    for (std::int32_t i = 0; i < after.count; ++i) {
      if (after.nodes[i] < 0 || after.nodes[i] >= id) return refuse("waits for no node before it");
      node.after.push_back(after.nodes[i]);
    }
    plan_.nodes.push_back(std::move(node));
    return id;
  }

  // What a call clears comes first, so that one fill does it.
  void place_scratch() {
    is_zeroed_.resize(plan_.buffers.size());
    std::int64_t end = 0;
    for (const bool zeroed : {true, false}) {
      for (std::size_t i = shape_.tensors.size(); i < plan_.buffers.size(); ++i) {
        if (is_zeroed_[i] != zeroed) continue;
        plan_.buffers[i].offset = end;
        end += aligned(plan_.buffers[i].bytes);
      }
      if (zeroed) plan_.zeroed_bytes = end;
    }
    plan_.workspace_bytes = end;
  }

  // A node goes on in the lane of a node that it waits for and nobody followed yet, else in one
  // whose last node has to be over anyway, else in a new one.
  void assign_lanes() {
    std::vector<std::vector<bool>> before;  // [node][earlier node]: has to be over
    std::vector<int> last{-1};              // of each lane; -1: nothing yet
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
      PlanNode& node = plan_.nodes[i];
      std::vector<bool> over(i);
      for (const int earlier : node.after) {
        const auto at = static_cast<std::size_t>(earlier);
        over[at] = true;
        for (std::size_t j = 0; j < before[at].size(); ++j)
          if (before[at][j]) over[j] = true;
      }
      node.lane = find_lane(node, over, last);
      const int followed = last[static_cast<std::size_t>(node.lane)];
      for (const int earlier : node.after) {
        const PlanNode& other = plan_.nodes[static_cast<std::size_t>(earlier)];
        if (other.lane != node.lane && !is_implied(earlier, followed, node, before))
          node.waits.push_back(earlier);
      }
      for (const int earlier : node.waits)
        plan_.nodes[static_cast<std::size_t>(earlier)].is_waited_for = true;
      last[static_cast<std::size_t>(node.lane)] = static_cast<int>(i);
      before.push_back(std::move(over));
    }
    plan_.lanes = static_cast<int>(last.size());
    for (std::size_t lane = 1; lane < last.size(); ++lane) {
      const int end = last[lane];
      const int main_end = last[0];
      if (main_end >= 0 && end < main_end &&
          before[static_cast<std::size_t>(main_end)][static_cast<std::size_t>(end)])
        continue;
      plan_.ends.push_back(end);
      plan_.nodes[static_cast<std::size_t>(end)].is_waited_for = true;
    }
  }

  static int find_lane(const PlanNode& node, const std::vector<bool>& over,
                       std::vector<int>& last) {
    for (std::size_t lane = 0; lane < last.size(); ++lane)
      if (last[lane] >= 0 &&
          std::find(node.after.begin(), node.after.end(), last[lane]) != node.after.end())
        return static_cast<int>(lane);
    for (std::size_t lane = 0; lane < last.size(); ++lane)
      if (last[lane] < 0 || over[static_cast<std::size_t>(last[lane])])
        return static_cast<int>(lane);
    last.push_back(-1);
    return static_cast<int>(last.size() - 1);
  }

  // Whether waiting for `earlier` follows from what comes before anyway.
  static bool is_implied(int earlier, int followed, const PlanNode& node,
                         const std::vector<std::vector<bool>>& before) {
    const auto comes_before = [&](int later) {
      const auto at = static_cast<std::size_t>(later);
      return earlier < later && before[at][static_cast<std::size_t>(earlier)];
    };
    if (followed >= 0 && comes_before(followed)) return true;
    return std::any_of(node.after.begin(), node.after.end(), comes_before);
  }

  const PlanShape& shape_;
  const PlanDevice& device_;
  RecordedPlan plan_;
  std::vector<bool> is_zeroed_;
  std::int64_t scratch_bytes_ = 0;
};

}  // namespace

RecordedPlan record_plan(kbeam_cuda_plan_function* function, const PlanShape& shape,
                         const PlanDevice& device) {
  return Recorder(shape, device).run(function);
}

}  // namespace kernelbeam::cuda
