#include "target/cuda/loaded_image.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

namespace kbeam {
namespace {

constexpr std::uint32_t kPortableClusterBlocks = 8;

std::uint64_t volume(const std::array<std::uint32_t, 3>& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}

}  // namespace

LoadedImage::LoadedImage(const Driver& cuda, const std::string& bytes)
    : cuda_(cuda), bytes_(bytes) {
  DRIVER(cuda_, cuModuleLoadData, &module_, bytes_.data());
}

LoadedImage::~LoadedImage() {
  if (module_ != nullptr) cuda_.cuModuleUnload(module_);
}

void LoadedImage::reload() {
  functions_.clear();
  const CUmodule old = module_;
  module_ = nullptr;
  if (old != nullptr) DRIVER(cuda_, cuModuleUnload, old);
  DRIVER(cuda_, cuModuleLoadData, &module_, bytes_.data());
}

CUfunction LoadedImage::function(const std::string& mangled_name) {
  const auto known = functions_.find(mangled_name);
  if (known != functions_.end()) return known->second;
  CUfunction found = nullptr;
  DRIVER(cuda_, cuModuleGetFunction, &found, module_, mangled_name.c_str());
  // Loading is lazy: the first launch would stop for it inside the timed interval.
  DRIVER(cuda_, cuFuncLoad, found);
  return functions_[mangled_name] = found;
}

void LoadedImage::opt_in(const LaunchPlan& plan) {
  struct Need {
    std::uint32_t shared_bytes = 0;
    std::uint64_t cluster = 0;
    int carveout = -1;
  };
  std::map<std::string, Need> needs;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != NodeKind::kernel) continue;
    Need& need = needs[node.kernel];
    need.shared_bytes = std::max(need.shared_bytes, node.dynamic_shared_bytes);
    need.cluster = std::max(need.cluster, volume(node.cluster));
    need.carveout = std::max(need.carveout, node.shared_carveout_percent);
  }
  for (const auto& [name, need] : needs) {
    const CUfunction found = function(name);
    if (need.shared_bytes > 0)
      DRIVER(cuda_, cuFuncSetAttribute, found, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
             static_cast<int>(need.shared_bytes));
    if (need.cluster > kPortableClusterBlocks)
      DRIVER(cuda_, cuFuncSetAttribute, found, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
             1);
    if (need.carveout >= 0)
      DRIVER(cuda_, cuFuncSetAttribute, found, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
             need.carveout);
  }
}

std::uint32_t LoadedImage::local_bytes(const LaunchPlan& plan) {
  std::uint32_t most = 0;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != NodeKind::kernel) continue;
    int bytes = 0;
    DRIVER(cuda_, cuFuncGetAttribute, &bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
           function(node.kernel));
    most = std::max(most, static_cast<std::uint32_t>(bytes));
  }
  return most;
}

std::string LoadedImage::find_parameter_mistake(const PlanNode& node, CUfunction function) const {
  std::size_t count = 0;
  std::size_t offset = 0;
  std::size_t size = 0;
  for (; cuda_.cuFuncGetParamInfo(function, count, &offset, &size) == CUDA_SUCCESS; ++count) {
    if (count >= node.arguments.size()) continue;
    if (node.arguments[count].size != size)
      return fmt::format("{}: parameter {} has {} bytes in the image and {} in the plan",
                         node.kernel_name, count, size, node.arguments[count].size);
  }
  if (count != node.arguments.size())
    return fmt::format("{}: the kernel takes {} parameters, the plan passes {}", node.kernel_name,
                       count, node.arguments.size());
  return "";
}

std::string LoadedImage::find_launch_mistake(const PlanNode& node, CUdevice device) {
  CUfunction found = nullptr;
  if (cuda_.cuModuleGetFunction(&found, module_, node.kernel.c_str()) != CUDA_SUCCESS)
    return fmt::format("{}: the image has no such kernel", node.kernel_name);
  if (std::string mistake = find_parameter_mistake(node, found); !mistake.empty()) return mistake;
  int most_threads = 0;
  DRIVER(cuda_, cuFuncGetAttribute, &most_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, found);
  const std::uint64_t threads = volume(node.block);
  if (threads > static_cast<std::uint64_t>(most_threads))
    return fmt::format("{}: {} threads a block; its registers allow {}", node.kernel_name, threads,
                       most_threads);
  int resident = 0;
  const CUresult answer = cuda_.cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &resident, found, static_cast<int>(threads), node.dynamic_shared_bytes);
  if (answer != CUDA_SUCCESS || resident == 0)
    return fmt::format("{}: no block of {} threads with {} bytes of dynamic shared memory fits",
                       node.kernel_name, threads, node.dynamic_shared_bytes);
  if (node.cooperative) {
    int multiprocessors = 0;
    DRIVER(cuda_, cuDeviceGetAttribute, &multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
           device);
    const std::uint64_t most = static_cast<std::uint64_t>(resident) * multiprocessors;
    if (volume(node.grid) > most)
      return fmt::format("{}: a cooperative launch of {} blocks; {} are resident at once",
                         node.kernel_name, volume(node.grid), most);
  }
  if (volume(node.cluster) > 1) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {node.cluster[0], node.cluster[1], node.cluster[2]};
    CUlaunchConfig config{};
    config.gridDimX = node.grid[0], config.gridDimY = node.grid[1], config.gridDimZ = node.grid[2];
    config.blockDimX = node.block[0], config.blockDimY = node.block[1],
    config.blockDimZ = node.block[2];
    config.sharedMemBytes = node.dynamic_shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    const CUresult fits = cuda_.cuOccupancyMaxActiveClusters(&clusters, found, &config);
    if (fits != CUDA_SUCCESS || clusters == 0)
      return fmt::format("{}: no cluster of {} blocks fits ({})", node.kernel_name,
                         volume(node.cluster), cuda_.error_text(fits));
  }
  return "";
}

std::vector<std::string> LoadedImage::find_mistakes(const LaunchPlan& plan, CUdevice device) {
  std::vector<std::string> mistakes;
  for (const PlanNode& node : plan.nodes)
    if (node.kind == NodeKind::kernel) {
      CUfunction unused = nullptr;
      if (cuda_.cuModuleGetFunction(&unused, module_, node.kernel.c_str()) != CUDA_SUCCESS)
        return {fmt::format("{}: the image has no such kernel", node.kernel_name)};
    }
  opt_in(plan);
  std::set<std::string> seen;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != NodeKind::kernel) continue;
    std::string mistake = find_launch_mistake(node, device);
    if (!mistake.empty() && seen.insert(mistake).second) mistakes.push_back(std::move(mistake));
  }
  return mistakes;
}

}  // namespace kbeam
