// A GPU for tests: the driver's table filled with functions that keep graphs as data and run
// "kernels" (C++ functions by name) on this process's memory. Device addresses are host addresses;
// what is unmapped cannot be touched: an access ends the test.
#pragma once

#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "target/cuda/driver.h"
#include "target/cuda/kernels/seat_kernel_types.h"

namespace kbeam {

struct FakeKernel {
  std::vector<std::size_t> parameters;  // sizes
  std::function<void(void** parameters)> body;
  int most_threads = 1024;
  int local_bytes = 0;
};

struct FakeGraph;
struct FakeNode {
  std::string kind;  // "kernel", "copy", "child", "event", "conditional"
  std::string kernel;
  CUDA_KERNEL_NODE_PARAMS launch{};
  std::vector<std::vector<char>> arguments;
  std::vector<FakeNode*> after;
  std::vector<FakeNode*> after_programmatic;
  std::array<unsigned, 3> cluster{0, 0, 0};
  bool cooperative = false;
  CUDA_MEMCPY3D copy{};
  FakeGraph* child = nullptr;
  CUevent event = nullptr;
  CUgraphConditionalHandle condition = 0;
  std::vector<FakeGraph*> bodies;
  std::vector<CUgraph> body_handles;
};
struct FakeGraph {
  std::deque<FakeNode> nodes;
};
struct FakeFunction {
  std::string name;
  CUmodule module = nullptr;
  int dynamic_shared_bytes = 48 * 1024;
  bool non_portable = false;
  bool loaded = false;
};

class FakeDriver {
 public:
  FakeDriver() {
    current() = this;
    add_trusted_kernels();
  }
  ~FakeDriver() {
    for (const auto& [address, bytes] : reserved) ::munmap(reinterpret_cast<void*>(address), bytes);
    for (const auto& [handle, file] : files) ::close(file);
    current() = nullptr;
  }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  Driver driver() const { return Driver(table()); }
  // The mapped bytes within the largest reservation: the judge's.
  bool judge_mapped() const {
    CUdeviceptr judge = 0;
    std::size_t most = 0;
    for (const auto& [address, bytes] : reserved)
      if (bytes > most) most = bytes, judge = address;
    for (const auto& [address, bytes] : mapped)
      if (address >= judge && address < judge + most) return true;
    return false;
  }
  static bool is_candidate(const FakeGraph& graph) {
    for (const FakeNode& node : graph.nodes)
      if (node.kernel.starts_with("candidate_")) return true;
    return false;
  }

  std::map<std::string, FakeKernel> kernels;
  std::vector<std::string> log;
  std::map<CUdeviceptr, std::size_t> reserved;
  std::map<CUdeviceptr, std::size_t> mapped;
  std::map<CUmemGenericAllocationHandle, int> files;
  std::deque<FakeFunction> functions;
  std::deque<FakeGraph> graphs;
  std::map<CUgraphConditionalHandle, unsigned> conditions;
  std::set<CUmodule> modules;
  std::vector<bool> judge_mapped_at_launch;  // of graphs with candidate kernels
  CUresult next_sync = CUDA_SUCCESS;         // of the synchronisation after a candidate's graph
  std::function<void()> before_context_sync;
  int module_loads = 0;
  std::uintptr_t next_handle = 1;

 private:
  static FakeDriver*& current() {
    static FakeDriver* instance = nullptr;
    return instance;
  }
  static FakeDriver& self() { return *current(); }
  template <typename T>
  static T& argument(void** parameters, int index) {
    return *static_cast<T*>(parameters[index]);
  }
  static std::uint32_t pattern(std::uint64_t word, std::uint64_t key, int type) {
    const auto random = static_cast<std::uint32_t>((word * 0x9e3779b97f4a7c15ull + key) >> 29);
    return type == kPoisonF32 ? (random & 0x801fffffu) | 0x7fc00001u : random;
  }

  void add_trusted_kernels() {
    using P = std::uint32_t*;
    using U = std::uint64_t;
    const auto report = [](SeatFinding* finding, U first) {
      ++finding->count;
      if (first < finding->first) finding->first = first;
    };
    kernels["kbeam_poison"].body = [](void** p) {
      for (U i = 0; i < argument<U>(p, 1); ++i)
        argument<P>(p, 0)[i] =
            pattern(argument<U>(p, 2) + i, argument<U>(p, 3), argument<int>(p, 4));
    };
    kernels["kbeam_find_damage"].body = [report](void** p) {
      for (U i = 0; i < argument<U>(p, 1); ++i) {
        std::uint32_t wrong =
            argument<P>(p, 0)[i] ^
            pattern(argument<U>(p, 2) + i, argument<U>(p, 3), argument<int>(p, 4));
        if (i == 0) wrong &= 0xffffffffu << (8 * argument<std::uint32_t>(p, 5));
        for (int byte = 0; byte < 4; ++byte)
          if ((wrong >> (8 * byte)) & 0xff) report(argument<SeatFinding*>(p, 6), 4 * i + byte);
      }
    };
    kernels["kbeam_find_poison"].body = [report](void** p) {
      const int type = argument<int>(p, 3);
      const U words = type == kPoisonF64 || type == kPoisonI64 ? 2 : 1;
      const auto holds = [&](U word) {
        return argument<P>(p, 0)[word] == pattern(word, argument<U>(p, 2), type);
      };
      for (U i = 0; i < argument<U>(p, 1); ++i)
        if (holds(words * i) && holds(words * i + words - 1))
          report(argument<SeatFinding*>(p, 4), i);
    };
    kernels["kbeam_compare"].body = [report](void** p) {
      for (U i = 0; i < argument<U>(p, 2); ++i)
        if (argument<char*>(p, 0)[i] != argument<char*>(p, 1)[i])
          report(argument<SeatFinding*>(p, 3), i);
    };
    kernels["kbeam_fill"].body = [](void** p) {
      std::memset(argument<void*>(p, 0), argument<int>(p, 2), argument<U>(p, 1));
    };
    kernels["kbeam_fill"].parameters = {8, 8, 4};
    kernels["kbeam_copy"].body = [](void** p) {
      std::memcpy(argument<void*>(p, 0), argument<void*>(p, 1), argument<U>(p, 2));
    };
    kernels["kbeam_copy"].parameters = {8, 8, 8};
    for (const char* name :
         {"kbeam_flush_write", "kbeam_flush_read", "kbeam_scrub_shared", "kbeam_scrub_local_1k",
          "kbeam_scrub_local_4k", "kbeam_scrub_local_16k", "kbeam_scrub_local_64k", "kbeam_spin"})
      kernels[name].body = [](void**) {};
    kernels["kbeam_probe"].body = [](void** p) {
      *argument<std::uint64_t*>(p, 0) = 0;
      for (std::uint32_t i = 0; i < kProbeBlocks * kProbeThreads; ++i)
        *argument<std::uint64_t*>(p, 0) += probe_term(i);
    };
  }

  template <typename Handle>
  Handle handle() {
    return reinterpret_cast<Handle>(next_handle++);
  }
  static FakeGraph* graph_of(CUgraph graph) { return reinterpret_cast<FakeGraph*>(graph); }
  static FakeNode* node_of(CUgraphNode node) { return reinterpret_cast<FakeNode*>(node); }

  FakeNode& add(const char* kind, CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                std::size_t count) {
    log.push_back(std::string("add ") + kind);
    FakeNode& node = graph_of(graph)->nodes.emplace_back();
    node.kind = kind;
    for (std::size_t i = 0; i < count; ++i) node.after.push_back(node_of(after[i]));
    *made = reinterpret_cast<CUgraphNode>(&node);
    return node;
  }

  void run(FakeGraph& graph) {
    for (FakeNode& node : graph.nodes) {
      if (node.kind == "kernel") {
        std::vector<void*> pointers;
        for (auto& bytes : node.arguments) pointers.push_back(bytes.data());
        if (kernels.at(node.kernel).body) kernels.at(node.kernel).body(pointers.data());
      } else if (node.kind == "copy") {
        std::memcpy(reinterpret_cast<void*>(node.copy.dstDevice),
                    reinterpret_cast<void*>(node.copy.srcDevice), node.copy.WidthInBytes);
      } else if (node.kind == "child") {
        run(*node.child);
      } else if (node.kind == "conditional") {
        if (conditions.at(node.condition) != 0)
          run(*node.bodies[0]);
        else if (node.bodies.size() > 1)
          run(*node.bodies[1]);
      }
    }
  }

  DriverTable table() const;
};

inline DriverTable FakeDriver::table() const {
  DriverTable t;
  t.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  t.cuDriverGetVersion = [](int* version) { return *version = 13000, CUDA_SUCCESS; };
  t.cuGetErrorName = [](CUresult result, const char** name) {
    *name =
        result == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
  };
  t.cuGetErrorString = [](CUresult, const char** text) { return *text = "as told", CUDA_SUCCESS; };
  t.cuDeviceGet = [](CUdevice* device, int) { return *device = 0, CUDA_SUCCESS; };
  t.cuDeviceGetName = [](char* name, int size, CUdevice) {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) {
    std::memset(uuid, 0xab, sizeof(*uuid));
    return CUDA_SUCCESS;
  };
  t.cuDeviceGetAttribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = which == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE                       ? 1 << 20
             : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 132
             : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? 9
             : which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
             : which == CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS            ? 1
                                                                              : 0;
    return CUDA_SUCCESS;
  };
  t.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice) {
    *context = self().handle<CUcontext>();
    return CUDA_SUCCESS;
  };
  t.cuCtxSetCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  t.cuCtxSynchronize = [] {
    if (self().before_context_sync) self().before_context_sync();
    return CUDA_SUCCESS;
  };
  t.cuCtxSetLimit = [](CUlimit limit, std::size_t value) {
    self().log.push_back("limit " + std::to_string(limit) + " " + std::to_string(value));
    return CUDA_SUCCESS;
  };
  t.cuCtxResetPersistingL2Cache = [] {
    self().log.push_back("reset persisting");
    return CUDA_SUCCESS;
  };
  t.cuMemAlloc = [](CUdeviceptr* address, std::size_t bytes) {
    *address = reinterpret_cast<CUdeviceptr>(::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return CUDA_SUCCESS;
  };
  t.cuMemFree = [](CUdeviceptr address) {
    ::free(reinterpret_cast<void*>(address));
    return CUDA_SUCCESS;
  };
  t.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(to, reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return CUDA_SUCCESS;
  };
  t.cuMemAddressReserve = [](CUdeviceptr* address, std::size_t bytes, std::size_t, CUdeviceptr,
                             unsigned long long) {
    void* range =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = reinterpret_cast<CUdeviceptr>(range);
    self().reserved[*address] = bytes;
    return CUDA_SUCCESS;
  };
  t.cuMemAddressFree = [](CUdeviceptr address, std::size_t bytes) {
    ::munmap(reinterpret_cast<void*>(address), bytes);
    self().reserved.erase(address);
    return CUDA_SUCCESS;
  };
  t.cuMemCreate = [](CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp*, unsigned long long) {
    const int file = ::memfd_create("fake device memory", 0);
    if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = self().next_handle++;
    self().files[*handle] = file;
    return CUDA_SUCCESS;
  };
  t.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    ::close(self().files.at(handle));
    self().files.erase(handle);
    return CUDA_SUCCESS;
  };
  t.cuMemMap = [](CUdeviceptr address, std::size_t bytes, std::size_t,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
    ::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
           self().files.at(handle), 0);
    self().mapped[address] = bytes;
    self().log.push_back("map");
    return CUDA_SUCCESS;
  };
  // Always for writing as well: a test may write into an input and see what the comparison says.
  t.cuMemSetAccess = [](CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* wanted,
                        std::size_t) {
    if (wanted->flags == CU_MEM_ACCESS_FLAGS_PROT_READ) self().log.push_back("read-only");
    ::mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
  };
  t.cuMemUnmap = [](CUdeviceptr address, std::size_t bytes) {
    ::mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    self().mapped.erase(address);
    self().log.push_back("unmap");
    return CUDA_SUCCESS;
  };
  t.cuMemGetAllocationGranularity = [](std::size_t* bytes, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
    return *bytes = 256 << 10, CUDA_SUCCESS;
  };
  t.cuStreamCreate = [](CUstream* stream, unsigned flags) {
    self().log.push_back("stream " + std::to_string(flags));
    *stream = self().handle<CUstream>();
    return CUDA_SUCCESS;
  };
  t.cuStreamSynchronize = [](CUstream) {
    const CUresult result = self().next_sync;
    return result;
  };
  t.cuEventCreate = [](CUevent* event, unsigned) {
    *event = self().handle<CUevent>();
    return CUDA_SUCCESS;
  };
  t.cuEventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  t.cuEventRecord = [](CUevent, CUstream) {
    self().log.push_back("record");
    return CUDA_SUCCESS;
  };
  t.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
    return *milliseconds = 0.002f, CUDA_SUCCESS;
  };
  t.cuModuleLoadData = [](CUmodule* module, const void*) {
    *module = self().handle<CUmodule>();
    self().modules.insert(*module);
    ++self().module_loads;
    self().log.push_back("load");
    return CUDA_SUCCESS;
  };
  t.cuModuleUnload = [](CUmodule module) {
    self().modules.erase(module);
    self().log.push_back("unload");
    return CUDA_SUCCESS;
  };
  t.cuModuleGetFunction = [](CUfunction* function, CUmodule module, const char* name) {
    if (!self().kernels.contains(name)) return CUDA_ERROR_NOT_FOUND;
    for (FakeFunction& known : self().functions)
      if (known.name == name && known.module == module) {
        *function = reinterpret_cast<CUfunction>(&known);
        return CUDA_SUCCESS;
      }
    FakeFunction& made = self().functions.emplace_back();
    made.name = name;
    made.module = module;
    *function = reinterpret_cast<CUfunction>(&made);
    return CUDA_SUCCESS;
  };
  t.cuFuncLoad = [](CUfunction function) {
    reinterpret_cast<FakeFunction*>(function)->loaded = true;
    return CUDA_SUCCESS;
  };
  t.cuFuncGetAttribute = [](int* value, CUfunction_attribute which, CUfunction function) {
    const auto& kernel = self().kernels.at(reinterpret_cast<FakeFunction*>(function)->name);
    *value = which == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? kernel.local_bytes : kernel.most_threads;
    return CUDA_SUCCESS;
  };
  t.cuFuncSetAttribute = [](CUfunction function, CUfunction_attribute which, int value) {
    auto* target = reinterpret_cast<FakeFunction*>(function);
    if (which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
      target->dynamic_shared_bytes = value;
    if (which == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) target->non_portable = value;
    self().log.push_back("opt in " + target->name);
    return CUDA_SUCCESS;
  };
  t.cuFuncGetParamInfo = [](CUfunction function, std::size_t index, std::size_t*,
                            std::size_t* size) {
    const auto& sizes =
        self().kernels.at(reinterpret_cast<FakeFunction*>(function)->name).parameters;
    if (index >= sizes.size()) return CUDA_ERROR_INVALID_VALUE;
    return *size = sizes[index], CUDA_SUCCESS;
  };
  t.cuLaunchKernel = [](CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream, void** parameters, void**) {
    const std::string& name = reinterpret_cast<FakeFunction*>(function)->name;
    self().log.push_back(name);
    self().kernels.at(name).body(parameters);
    return CUDA_SUCCESS;
  };
  t.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction function, int,
                                                     std::size_t shared) {
    *blocks =
        static_cast<int>(shared) <= reinterpret_cast<FakeFunction*>(function)->dynamic_shared_bytes
            ? 2
            : 0;
    return CUDA_SUCCESS;
  };
  t.cuOccupancyMaxActiveClusters = [](int* clusters, CUfunction function,
                                      const CUlaunchConfig* config) {
    const bool large = config->attrs->value.clusterDim.x > 8;
    *clusters = large && !reinterpret_cast<FakeFunction*>(function)->non_portable ? 0 : 7;
    return CUDA_SUCCESS;
  };
  t.cuTensorMapEncodeTiled = [](CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void* base,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    std::memcpy(map, &base, sizeof(base));
    return CUDA_SUCCESS;
  };
  t.cuGraphCreate = [](CUgraph* graph, unsigned) {
    *graph = reinterpret_cast<CUgraph>(&self().graphs.emplace_back());
    return CUDA_SUCCESS;
  };
  t.cuGraphDestroy = [](CUgraph) { return CUDA_SUCCESS; };
  t.cuGraphAddKernelNode = [](CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_KERNEL_NODE_PARAMS* launch) {
    const auto* function = reinterpret_cast<FakeFunction*>(launch->func);
    if (!self().modules.contains(function->module)) return CUDA_ERROR_INVALID_HANDLE;
    FakeNode& node = self().add("kernel", made, graph, after, count);
    node.kernel = function->name;
    node.launch = *launch;
    const auto& sizes = self().kernels.at(node.kernel).parameters;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const char* from = static_cast<const char*>(launch->kernelParams[i]);
      node.arguments.emplace_back(from, from + sizes[i]);
    }
    return CUDA_SUCCESS;
  };
  t.cuGraphKernelNodeSetAttribute = [](CUgraphNode node, CUlaunchAttributeID which,
                                       const CUlaunchAttributeValue* value) {
    if (which == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      node_of(node)->cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    if (which == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) node_of(node)->cooperative = value->cooperative;
    return CUDA_SUCCESS;
  };
  t.cuGraphAddMemcpyNode = [](CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                              std::size_t count, const CUDA_MEMCPY3D* copy, CUcontext) {
    self().add("copy", made, graph, after, count).copy = *copy;
    return CUDA_SUCCESS;
  };
  t.cuGraphAddChildGraphNode = [](CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                  std::size_t count, CUgraph child) {
    self().add("child", made, graph, after, count).child = graph_of(child);
    return CUDA_SUCCESS;
  };
  t.cuGraphAddEventRecordNode = [](CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, CUevent event) {
    self().add("event", made, graph, after, count).event = event;
    return CUDA_SUCCESS;
  };
  t.cuGraphAddNode = [](CUgraphNode* made, CUgraph graph, const CUgraphNode* after,
                        const CUgraphEdgeData*, std::size_t count, CUgraphNodeParams* parameters) {
    FakeNode& node = self().add("conditional", made, graph, after, count);
    node.condition = parameters->conditional.handle;
    for (unsigned i = 0; i < parameters->conditional.size; ++i) {
      node.bodies.push_back(&self().graphs.emplace_back());
      node.body_handles.push_back(reinterpret_cast<CUgraph>(node.bodies.back()));
    }
    parameters->conditional.phGraph_out = node.body_handles.data();
    return CUDA_SUCCESS;
  };
  t.cuGraphAddDependencies = [](CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* edge, std::size_t) {
    if (edge->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
        edge->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC)
      node_of(*to)->after_programmatic.push_back(node_of(*from));
    return CUDA_SUCCESS;
  };
  t.cuGraphConditionalHandleCreate = [](CUgraphConditionalHandle* handle, CUgraph, CUcontext,
                                        unsigned initial, unsigned) {
    *handle = self().next_handle++;
    self().conditions[*handle] = initial;
    self().log.push_back("condition");
    return CUDA_SUCCESS;
  };
  t.cuGraphInstantiateWithFlags = [](CUgraphExec* made, CUgraph graph, unsigned long long) {
    *made = reinterpret_cast<CUgraphExec>(graph);
    self().log.push_back("instantiate");
    return CUDA_SUCCESS;
  };
  t.cuGraphExecDestroy = [](CUgraphExec) {
    self().log.push_back("destroy");
    return CUDA_SUCCESS;
  };
  t.cuGraphUpload = [](CUgraphExec, CUstream) { return CUDA_SUCCESS; };
  t.cuGraphLaunch = [](CUgraphExec executable, CUstream) {
    auto& graph = *reinterpret_cast<FakeGraph*>(executable);
    self().log.push_back("launch");
    if (is_candidate(graph)) self().judge_mapped_at_launch.push_back(self().judge_mapped());
    self().run(graph);
    return CUDA_SUCCESS;
  };
  return t;
}

}  // namespace kbeam
