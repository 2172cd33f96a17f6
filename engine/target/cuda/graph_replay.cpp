#include "target/cuda/graph_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/defence.h"
#include "target/cuda/plan_indices.h"

namespace kbeam {
namespace {

// Measured: a small copy kernel costs half of a copy node; large copies are the copy node's.
constexpr std::int64_t kLargestCopyByKernel = 4 << 20;

bool is_kernel_node(const PlanNode& node) {
  return node.kind == NodeKind::kernel || node.kind == NodeKind::fill ||
         (node.kind == NodeKind::copy && node.bytes <= kLargestCopyByKernel);
}

// Owned by the caller until it goes into a graph piece.
CUgraphExec instantiate(const Driver& cuda, CUgraph graph, CUstream stream) {
  CUgraphExec executable = nullptr;
  DRIVER(cuda, cuGraphInstantiateWithFlags, &executable, graph, 0);
  DRIVER(cuda, cuGraphUpload, executable, stream);
  return executable;
}

}  // namespace

// Fills one graph with the nodes of a plan.
class GraphReplay::Builder {
 public:
  // `conditions`: those of the nodes that will be added; a handle that no node uses makes
  // instantiation fail.
  Builder(const GraphReplay& replay, CUgraph root, const std::set<int>& conditions)
      : replay_(replay), cuda_(replay.context_.cuda), root_(root) {
    nodes_.resize(replay.plan_.nodes.size());
    for (const int id : conditions) {
      CUgraphConditionalHandle handle = 0;
      DRIVER(cuda_, cuGraphConditionalHandleCreate, &handle, root_, replay_.context_.context,
             replay_.plan_.conditions[static_cast<std::size_t>(id)],
             defence_is_on(Defence::condition_reset) ? CU_GRAPH_COND_ASSIGN_DEFAULT : 0);
      conditions_[id] = handle;
    }
    for (const PlanTensorMap& map : replay.plan_.tensor_maps) maps_.push_back(encode(map));
  }

  // Scratch that starts a call as zeros is cleared inside the graph, before every root node.
  void add_clearing() {
    const LaunchPlan& plan = replay_.plan_;
    for (std::size_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].kind == BufferKind::zeroed_scratch && plan.buffers[i].bytes > 0)
        roots_.push_back(add_fill(root_, {}, replay_.addresses_[i], plan.buffers[i].bytes, 0));
  }

  // Every node of no body waits for exactly these from now on, whatever the plan says.
  void serialise_after(CUgraphNode node) { serial_ = node; }

  CUgraphNode add(int index) {
    const PlanNode& node = replay_.plan_.nodes[static_cast<std::size_t>(index)];
    const CUgraph graph = node.body < 0 ? root_ : bodies_.at(node.body);
    CUgraphNode programmatic = nullptr;
    const std::vector<CUgraphNode> after = find_dependencies(node, programmatic);
    CUgraphNode& made = nodes_[static_cast<std::size_t>(index)];
    made = add_to(graph, index, node, after);
    if (programmatic != nullptr) add_programmatic_edge(graph, programmatic, made);
    return made;
  }

  // After `after`, or after the clearing of scratch when there is none.
  CUgraphNode add_event(CUgraphNode after, CUevent event) {
    const std::vector<CUgraphNode> before =
        after == nullptr ? roots_ : std::vector<CUgraphNode>{after};
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddEventRecordNode, &made, root_, before.data(), before.size(), event);
    return made;
  }

 private:
  std::vector<CUgraphNode> find_dependencies(const PlanNode& node,
                                             CUgraphNode& programmatic) const {
    if (node.body < 0 && serial_ != nullptr) return {serial_};
    std::vector<CUgraphNode> after;
    const int last =
        node.after.empty() ? -1 : *std::max_element(node.after.begin(), node.after.end());
    for (const int before : node.after) {
      const CUgraphNode upstream = nodes_[static_cast<std::size_t>(before)];
      if (upstream == nullptr) continue;  // in an earlier piece, which the stream orders
      if (before == last && node.overlap_previous && node.kind == NodeKind::kernel &&
          is_kernel_node(replay_.plan_.nodes[static_cast<std::size_t>(before)]))
        programmatic = upstream;
      else
        after.push_back(upstream);
    }
    if (node.body < 0 && node.after.empty()) return roots_;
    return after;
  }

  CUgraphNode add_to(CUgraph graph, int index, const PlanNode& node,
                     const std::vector<CUgraphNode>& after) {
    switch (node.kind) {
      case NodeKind::kernel:
        return add_kernel(graph, node, after);
      case NodeKind::fill:
        return add_fill(graph, after, address(node.to), node.bytes, node.byte_value);
      case NodeKind::copy:
        return add_copy(graph, node, after);
      case NodeKind::gemm:
      case NodeKind::vendor_call:
        return add_library(graph, index, after);
      case NodeKind::conditional:
        return add_conditional(graph, index, node, after);
    }
    throw DriverFailure(CUDA_ERROR_INVALID_VALUE, "build", "a node of an unknown kind");
  }

  CUgraphNode add_kernel(CUgraph graph, const PlanNode& node,
                         const std::vector<CUgraphNode>& after) {
    std::vector<CUdeviceptr> pointers(node.arguments.size());
    std::vector<void*> parameters(node.arguments.size());
    for (std::size_t i = 0; i < node.arguments.size(); ++i)
      parameters[i] = patch(node.arguments[i], pointers[i]);
    CUDA_KERNEL_NODE_PARAMS launch{};
    launch.func = replay_.image_->function(node.kernel);
    launch.gridDimX = node.grid[0], launch.gridDimY = node.grid[1], launch.gridDimZ = node.grid[2];
    launch.blockDimX = node.block[0], launch.blockDimY = node.block[1],
    launch.blockDimZ = node.block[2];
    launch.sharedMemBytes = node.dynamic_shared_bytes;
    launch.kernelParams = parameters.data();
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddKernelNode, &made, graph, after.data(), after.size(), &launch);
    CUlaunchAttributeValue value{};
    if (node.cluster[0] > 0) {
      value.clusterDim = {node.cluster[0], node.cluster[1], node.cluster[2]};
      DRIVER(cuda_, cuGraphKernelNodeSetAttribute, made, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
             &value);
    }
    if (node.cooperative) {
      value = {};
      value.cooperative = 1;
      DRIVER(cuda_, cuGraphKernelNodeSetAttribute, made, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    }
    return made;
  }

  // The driver copies arguments while the node is added; `pointer` keeps an address until then.
  void* patch(const PlanArgument& argument, CUdeviceptr& pointer) {
    switch (argument.kind) {
      case KBEAM_ADDRESS:
        pointer = address(argument.address);
        return &pointer;
      case KBEAM_TENSOR_MAP:
        return &maps_[static_cast<std::size_t>(argument.id)];
      case KBEAM_CONDITION:
        return &conditions_.at(argument.id);
      case KBEAM_VALUE:
        break;
    }
    return const_cast<char*>(argument.value.data());
  }

  CUgraphNode add_trusted(CUgraph graph, const std::vector<CUgraphNode>& after, CUfunction function,
                          std::uint64_t bytes, void** parameters) {
    CUDA_KERNEL_NODE_PARAMS launch{};
    launch.func = function;
    launch.gridDimX = SeatKernels::blocks_for(bytes);
    launch.gridDimY = launch.gridDimZ = launch.blockDimY = launch.blockDimZ = 1;
    launch.blockDimX = SeatKernels::kThreads;
    launch.kernelParams = parameters;
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddKernelNode, &made, graph, after.data(), after.size(), &launch);
    return made;
  }

  CUgraphNode add_fill(CUgraph graph, const std::vector<CUgraphNode>& after, CUdeviceptr to,
                       std::int64_t bytes, std::uint8_t value) {
    auto count = static_cast<std::uint64_t>(bytes);
    std::uint32_t word = value;
    void* parameters[] = {&to, &count, &word};
    return add_trusted(graph, after, replay_.context_.kernels.fill_function(), count, parameters);
  }

  CUgraphNode add_copy(CUgraph graph, const PlanNode& node, const std::vector<CUgraphNode>& after) {
    CUdeviceptr to = address(node.to);
    CUdeviceptr from = address(node.from);
    auto bytes = static_cast<std::uint64_t>(node.bytes);
    if (is_kernel_node(node) || replay_.context_.remapped_memory) {
      void* parameters[] = {&to, &from, &bytes};
      return add_trusted(graph, after, replay_.context_.kernels.copy_function(), bytes, parameters);
    }
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddMemcpyNode, &made, graph, after.data(), after.size(), &copy,
           replay_.context_.context);
    return made;
  }

  CUgraphNode add_library(CUgraph graph, int index, const std::vector<CUgraphNode>& after) {
    const CUgraph child =
        replay_.context_.library->graph_of(replay_.plan_, index, replay_.addresses_);
    if (child == nullptr)
      throw DriverFailure(CUDA_ERROR_NOT_SUPPORTED, "capture",
                          fmt::format("node {}: this routine cannot be captured, so it cannot be "
                                      "part of a conditional body",
                                      index));
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddChildGraphNode, &made, graph, after.data(), after.size(), child);
    return made;
  }

  CUgraphNode add_conditional(CUgraph graph, int index, const PlanNode& node,
                              const std::vector<CUgraphNode>& after) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = conditions_.at(node.condition);
    parameters.conditional.type = CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = node.has_otherwise ? 2 : 1;
    parameters.conditional.ctx = replay_.context_.context;
    CUgraphNode made = nullptr;
    DRIVER(cuda_, cuGraphAddNode, &made, graph, after.data(), nullptr, after.size(), &parameters);
    bodies_[2 * index] = parameters.conditional.phGraph_out[0];
    if (node.has_otherwise) bodies_[2 * index + 1] = parameters.conditional.phGraph_out[1];
    return made;
  }

  // The kernel may start when all blocks of `from` have triggered or ended; it waits by itself.
  void add_programmatic_edge(CUgraph graph, CUgraphNode from, CUgraphNode to) {
    CUgraphEdgeData edge{};
    edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    DRIVER(cuda_, cuGraphAddDependencies, graph, &from, &to, &edge, 1);
  }

  CUdeviceptr address(const BufferPlace& place) const {
    return replay_.addresses_[static_cast<std::size_t>(place.buffer)] +
           static_cast<CUdeviceptr>(place.offset_bytes);
  }

  CUtensorMap encode(const PlanTensorMap& request) const {
    CUtensorMap map{};
    DRIVER(cuda_, cuTensorMapEncodeTiled, &map, static_cast<CUtensorMapDataType>(request.data_type),
           static_cast<cuuint32_t>(request.rank), reinterpret_cast<void*>(address(request.base)),
           reinterpret_cast<const cuuint64_t*>(request.dim.data()),
           reinterpret_cast<const cuuint64_t*>(request.stride_bytes.data() + 1), request.box.data(),
           request.element_stride.data(), static_cast<CUtensorMapInterleave>(request.interleave),
           static_cast<CUtensorMapSwizzle>(request.swizzle),
           static_cast<CUtensorMapL2promotion>(request.l2_promotion),
           static_cast<CUtensorMapFloatOOBfill>(request.fill));
    return map;
  }

  const GraphReplay& replay_;
  const Driver& cuda_;
  CUgraph root_;
  std::vector<CUgraphNode> nodes_;  // by index in the plan; null: not in this graph
  std::vector<CUgraphNode> roots_;
  CUgraphNode serial_ = nullptr;
  std::map<int, CUgraph> bodies_;
  std::map<int, CUgraphConditionalHandle> conditions_;
  std::vector<CUtensorMap> maps_;
};

GraphReplay::GraphReplay(const ReplayContext& context, const LaunchPlan& plan,
                         std::vector<CUdeviceptr> addresses, LoadedImage* image)
    : context_(context), plan_(plan), addresses_(std::move(addresses)), image_(image) {
  CHECK(addresses_.size() == plan_.buffers.size(), "one address for each buffer of the plan");
}

GraphReplay::~GraphReplay() {
  // Errors here mean that the context is gone.
  for (const Piece& piece : pieces_) {
    if (piece.executable != nullptr) context_.cuda.cuGraphExecDestroy(piece.executable);
    if (piece.graph != nullptr) context_.cuda.cuGraphDestroy(piece.graph);
  }
}

void GraphReplay::drop() {
  for (Piece& piece : pieces_) {
    if (piece.executable != nullptr) DRIVER(context_.cuda, cuGraphExecDestroy, piece.executable);
    piece.executable = nullptr;
    if (piece.graph != nullptr) DRIVER(context_.cuda, cuGraphDestroy, piece.graph);
    piece.graph = nullptr;
  }
  pieces_.clear();
}

// Asked once: the answer does not change, and asking captures.
std::vector<int> GraphReplay::find_direct_calls() {
  std::vector<int> found;
  for (std::size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& node = plan_.nodes[i];
    if (node.kind != NodeKind::vendor_call && node.kind != NodeKind::gemm) continue;
    if (context_.library == nullptr)
      throw DriverFailure(CUDA_ERROR_INVALID_VALUE, "build",
                          "the plan calls a library, which this subject may not");
    if (node.body < 0 && node.kind == NodeKind::vendor_call &&
        context_.library->graph_of(plan_, static_cast<int>(i), addresses_) == nullptr)
      found.push_back(static_cast<int>(i));
  }
  return found;
}

void GraphReplay::build() {
  drop();
  if (image_ != nullptr) image_->opt_in(plan_);
  if (!direct_calls_known_) direct_calls_ = find_direct_calls();
  direct_calls_known_ = true;
  int begin = 0;
  for (const int call : direct_calls_) {
    add_piece(begin, call);
    pieces_.push_back({nullptr, nullptr, call});
    begin = call + 1;
  }
  add_piece(begin, static_cast<int>(plan_.nodes.size()));
  DRIVER(context_.cuda, cuStreamSynchronize, context_.stream);
}

void GraphReplay::add_piece(int begin, int end) {
  const bool clears =
      begin == 0 && std::any_of(plan_.buffers.begin(), plan_.buffers.end(), [](const auto& buffer) {
        return buffer.kind == BufferKind::zeroed_scratch && buffer.bytes > 0;
      });
  if (begin == end && !clears) return;
  std::set<int> conditions;
  for (int i = begin; i < end; ++i)
    if (plan_.nodes[static_cast<std::size_t>(i)].kind == NodeKind::conditional)
      conditions.insert(plan_.nodes[static_cast<std::size_t>(i)].condition);
  pieces_.emplace_back();
  Piece& piece = pieces_.back();
  DRIVER(context_.cuda, cuGraphCreate, &piece.graph, 0);
  Builder builder(*this, piece.graph, conditions);
  if (begin == 0) builder.add_clearing();
  CUgraphNode last = nullptr;
  for (int i = begin; i < end; ++i) last = builder.add(i);
  if (last_node_event_ != nullptr && last != nullptr) builder.add_event(last, last_node_event_);
  piece.executable = instantiate(context_.cuda, piece.graph, context_.stream);
}

void GraphReplay::launch() const {
  for (const Piece& piece : pieces_) {
    if (piece.direct_call >= 0)
      context_.library->run(plan_, piece.direct_call, addresses_);
    else
      DRIVER(context_.cuda, cuGraphLaunch, piece.executable, context_.stream);
  }
}

std::vector<int> GraphReplay::timed_nodes(const LaunchPlan& plan) {
  std::vector<int> nodes;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    if (plan.nodes[i].body < 0) nodes.push_back(static_cast<int>(i));
  return nodes;
}

std::vector<std::vector<double>> GraphReplay::time_nodes(int repeats) {
  if (has_direct_calls())
    throw DriverFailure(CUDA_ERROR_NOT_SUPPORTED, "time_nodes",
                        "a routine of this plan runs outside the graph, so its nodes cannot be "
                        "timed one by one");
  const Driver& cuda = context_.cuda;
  const std::size_t timed = timed_nodes(plan_).size();
  std::vector<CUevent> events(timed + 2);  // before each node, after the last, and one more
  for (CUevent& event : events) DRIVER(cuda, cuEventCreate, &event, CU_EVENT_DEFAULT);
  drop();  // a graph with conditions has one living executable
  if (image_ != nullptr) image_->opt_in(plan_);
  Piece& piece = pieces_.emplace_back();
  DRIVER(cuda, cuGraphCreate, &piece.graph, 0);
  Builder builder(*this, piece.graph, used_conditions(plan_));
  builder.add_clearing();
  std::size_t next = 0;
  CUgraphNode last = builder.add_event(nullptr, events[next++]);
  builder.serialise_after(last);
  for (std::size_t i = 0; i < plan_.nodes.size();) {
    const CUgraphNode made = builder.add(static_cast<int>(i));
    for (++i; i < plan_.nodes.size() && plan_.nodes[i].body >= 0; ++i)
      builder.add(static_cast<int>(i));
    last = builder.add_event(made, events[next++]);
    builder.serialise_after(last);
  }
  builder.add_event(last, events[next]);
  piece.executable = instantiate(cuda, piece.graph, context_.stream);
  std::vector<std::vector<double>> times;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    DRIVER(cuda, cuGraphLaunch, piece.executable, context_.stream);
    DRIVER(cuda, cuStreamSynchronize, context_.stream);
    std::vector<double>& row = times.emplace_back();
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
      float milliseconds = 0;
      DRIVER(cuda, cuEventElapsedTime, &milliseconds, events[i], events[i + 1]);
      row.push_back(1e6 * milliseconds);
    }
  }
  drop();
  for (const CUevent event : events) DRIVER(cuda, cuEventDestroy, event);
  build();
  return times;
}

}  // namespace kbeam
