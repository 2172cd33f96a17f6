#include "target/cuda/plan_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "target/cuda/occupancy.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostMistakes = 8;
constexpr std::size_t kMostEdges = 400'000;
constexpr std::size_t kMostBuffers = 4096;
constexpr std::size_t kMostTensorMaps = 4096;
constexpr std::size_t kMostConditions = 256;
constexpr std::size_t kMostFigures = 64;
constexpr std::size_t kMostNotes = 64;
constexpr std::size_t kLongestNote = 1000;
constexpr std::size_t kLongestName = 100;
constexpr std::uint32_t kMostGridX = 0x7fffffff;
constexpr std::uint32_t kMostGridYZ = 65535;
constexpr std::uint32_t kMostBlockZ = 64;
constexpr std::uint32_t kMostThreads = 1024;
constexpr std::uint64_t kMostCluster = 16;
constexpr int kFirstWithClusters = 90;
constexpr std::uint32_t kTensorMapBytes = 128;
constexpr std::int64_t kControlBytes = 16;
constexpr std::int64_t kFigureBytes = 8;

using Extent = std::array<std::uint32_t, 3>;

std::string text_of(const Extent& extent) {
  return fmt::format("{} x {} x {}", extent[0], extent[1], extent[2]);
}
std::uint64_t volume(const Extent& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}
bool is_absent(const Extent& extent) {
  return extent == Extent{0, 0, 0};
}

bool is_written(BufferKind kind) {
  return kind == BufferKind::output || kind == BufferKind::scratch ||
         kind == BufferKind::zeroed_scratch;
}

std::int64_t bytes_of(int gemm_type) {
  return gemm_type == KBEAM_GEMM_F64 ? 8 : gemm_type == KBEAM_GEMM_F32 ? 4 : 2;
}

class Inspection {
 public:
  Inspection(const LaunchPlan& plan, const PlanRules& rules) : plan_(plan), rules_(rules) {}

  std::vector<std::string> run() {
    if (!check_sizes()) return std::move(mistakes_);
    check_buffers();
    for (std::size_t i = 0; i < plan_.tensor_maps.size(); ++i)
      for (const std::string& what : find_tensor_map_mistakes(plan_.tensor_maps[i], plan_.buffers))
        say("tensor map {} {}", i, what);
    check_figures();
    for (node_ = 0; node_ < plan_.nodes.size() && mistakes_.size() < kMostMistakes; ++node_)
      check_node(plan_.nodes[node_]);
    check_conditions();
    if (mistakes_.size() > kMostMistakes) mistakes_.resize(kMostMistakes);
    return std::move(mistakes_);
  }

 private:
  template <typename... T>
  void say(fmt::format_string<T...> format, T&&... values) {
    mistakes_.push_back(fmt::format(format, std::forward<T>(values)...));
  }
  template <typename... T>
  void say_here(fmt::format_string<T...> format, T&&... values) {
    mistakes_.push_back(name_of_node(plan_, node_) + " " +
                        fmt::format(format, std::forward<T>(values)...));
  }

  bool check_sizes() {
    const auto within = [&](std::size_t count, std::size_t most, const char* what) {
      if (count > most) say("the plan has {} {}; the limit is {}", count, what, most);
      return count <= most;
    };
    std::size_t edges = 0;
    for (const PlanNode& node : plan_.nodes) edges += node.after.size();
    bool good =
        within(plan_.nodes.size(), static_cast<std::size_t>(rules_.limits.most_nodes), "nodes");
    good = within(edges, kMostEdges, "dependencies") && good;
    good = within(plan_.buffers.size(), kMostBuffers, "buffers") && good;
    good = within(plan_.tensor_maps.size(), kMostTensorMaps, "tensor maps") && good;
    good = within(plan_.conditions.size(), kMostConditions, "conditions") && good;
    good = within(plan_.figures.size(), kMostFigures, "figures") && good;
    good = within(plan_.notes.size(), kMostNotes, "notes") && good;
    for (const auto& [key, value] : plan_.notes)
      good = within(key.size() + value.size(), kLongestNote, "characters in one note") && good;
    if (plan_.nodes.empty()) say("the plan does nothing: it records no node");
    return good;
  }

  void check_buffers() {
    const std::vector<PlanBuffer> given = given_buffers(rules_.entry, rules_.tensors);
    bool as_given = plan_.buffers.size() >= given.size();
    for (std::size_t i = 0; i < given.size() && as_given; ++i)
      as_given = plan_.buffers[i].kind == given[i].kind && plan_.buffers[i].name == given[i].name &&
                 plan_.buffers[i].bytes == given[i].bytes;
    if (!as_given) return say("the plan's buffers are not the tensors of the case");
    std::int64_t scratch = 0, tables = 0;
    for (std::size_t i = given.size(); i < plan_.buffers.size(); ++i)
      check_own_buffer(plan_.buffers[i], scratch, tables);
    if (scratch > rules_.limits.most_scratch_bytes)
      say("the plan asks for {} bytes of scratch; the limit is {}", scratch,
          rules_.limits.most_scratch_bytes);
    if (tables > rules_.limits.most_table_bytes)
      say("the plan's tables hold {} bytes; the limit is {}", tables,
          rules_.limits.most_table_bytes);
  }

  void check_own_buffer(const PlanBuffer& buffer, std::int64_t& scratch, std::int64_t& tables) {
    constexpr std::int64_t kMostBytes = 1LL << 45;  // keeps the sums below from overflowing
    // The recorder makes these names; only a forged plan has others.
    if (buffer.name.size() > kLongestName || !std::ranges::all_of(buffer.name, [](char letter) {
          return letter >= ' ' && letter <= '~';
        }))
      return say("a buffer of the plan's own has no name that can be read");
    if (buffer.bytes < 1 || buffer.bytes > kMostBytes)
      return say("{} has {} bytes", buffer.name, buffer.bytes);
    switch (buffer.kind) {
      case BufferKind::scratch:
      case BufferKind::zeroed_scratch:
        scratch += buffer.bytes;
        return;
      case BufferKind::table:
        tables += buffer.bytes;
        if (static_cast<std::int64_t>(buffer.content.size()) != buffer.bytes)
          say("{} says {} bytes and holds {}", buffer.name, buffer.bytes, buffer.content.size());
        return;
      case BufferKind::figures:
        if (rules_.entry != PlanEntry::check ||
            buffer.bytes != kFigureBytes * static_cast<std::int64_t>(plan_.figures.size()))
          say("{} is not as large as the plan's figures need", buffer.name);
        return;
      default:
        say("{} is a second {} buffer", buffer.name, to_string(buffer.kind));
    }
  }

  void check_figures() {
    if (rules_.entry != PlanEntry::check) {
      if (!plan_.figures.empty()) say("only a check plan has figures");
      return;
    }
    if (plan_.figures.empty()) say("a check plan reports at least one figure");
    if (std::none_of(plan_.buffers.begin(), plan_.buffers.end(),
                     [](const PlanBuffer& buffer) { return buffer.kind == BufferKind::figures; }))
      say("the plan has no buffer for its figures");
    for (const PlanFigure& figure : plan_.figures) {
      if (!(figure.limit >= 0)) say("the figure {} has the limit {}", figure.name, figure.limit);
      if (figure.radices.size() != figure.radix_names.size() || figure.radices.size() > 3)
        say("the figure {} spells its places wrongly", figure.name);
      std::uint64_t places = 1;
      for (const std::int64_t radix : figure.radices) {
        if (radix < 1 || places > 0x100000000ULL / static_cast<std::uint64_t>(radix)) {
          say("the figure {} counts more than 2^32 places", figure.name);
          break;
        }
        places *= static_cast<std::uint64_t>(radix);
      }
    }
  }

  // Whether `bytes` from the place on are inside its buffer. An address may also be the end.
  bool is_inside(const BufferPlace& place, std::int64_t bytes, const char* what) {
    if (place.buffer < 0 || static_cast<std::size_t>(place.buffer) >= plan_.buffers.size()) {
      say_here("has {} in no buffer of the plan", what);
      return false;
    }
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(place.buffer)];
    if (place.offset_bytes >= 0 && place.offset_bytes <= buffer.bytes &&
        bytes <= buffer.bytes - place.offset_bytes)
      return true;
    if (bytes == 0)
      say_here("has {} at byte {} of {}, which has {} bytes", what, place.offset_bytes, buffer.name,
               buffer.bytes);
    else
      say_here("has {} of {} bytes from byte {} of {}, which has {} bytes", what, bytes,
               place.offset_bytes, buffer.name, buffer.bytes);
    return false;
  }

  bool is_target(const BufferPlace& place, std::int64_t bytes, const char* what) {
    if (!is_inside(place, bytes, what)) return false;
    const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(place.buffer)];
    if (!is_written(buffer.kind))
      say_here("writes to {}, which is read-only ({})", buffer.name, to_string(buffer.kind));
    return is_written(buffer.kind);
  }

  void check_node(const PlanNode& node) {
    check_order(node);
    switch (node.kind) {
      case NodeKind::kernel:
        return check_kernel(node);
      case NodeKind::fill:
      case NodeKind::copy:
        return check_transfer(node);
      case NodeKind::gemm:
        check_gemm(node.gemm);
        return;
      case NodeKind::vendor_call:
        if (may_call_vendor()) check_vendor_call(node);
        return;
      case NodeKind::conditional:
        if (node.condition < 0 ||
            static_cast<std::size_t>(node.condition) >= plan_.conditions.size())
          say_here("asks a condition that the plan does not have");
    }
  }

  bool may_call_vendor() {
    if (!rules_.may_use_libraries)
      say_here("calls a vendor's routine; only baselines may (docs/cuda.md)");
    return rules_.may_use_libraries;
  }

  void check_order(const PlanNode& node) {
    if (node.body >= 0) {
      const auto owner = static_cast<std::size_t>(node.body / 2);
      if (owner >= node_ || plan_.nodes[owner].kind != NodeKind::conditional ||
          (node.body % 2 == 1 && !plan_.nodes[owner].has_otherwise))
        say_here("belongs to a body that no conditional node before it has");
    } else if (node.body != -1) {
      say_here("belongs to no body");
    }
    std::set<int> seen;
    for (const int other : node.after) {
      if (other < 0 || static_cast<std::size_t>(other) >= node_)
        say_here("waits for node {}, which is not recorded before it", other);
      else if (plan_.nodes[static_cast<std::size_t>(other)].body != node.body)
        say_here("waits for node {}, which is in another body", other);
      else if (!seen.insert(other).second)
        say_here("waits twice for node {}", other);
    }
  }

  void check_kernel(const PlanNode& node) {
    const auto found = rules_.image.kernels.find(node.kernel);
    if (found == rules_.image.kernels.end())
      return say_here("launches a kernel that is not in the device image");
    check_arguments(node, found->second);
    check_shape(node, found->second);
    if (node.overlap_previous && (node.after.size() != 1 || !is_kernel_node(node.after.front())))
      say_here("overlaps the node before it, so it must wait for exactly one node, a kernel");
    if (node.shared_carveout_percent < -1 || node.shared_carveout_percent > 100)
      say_here("prefers {} % of shared memory", node.shared_carveout_percent);
  }
  bool is_kernel_node(int index) const {
    return index >= 0 && static_cast<std::size_t>(index) < node_ &&
           plan_.nodes[static_cast<std::size_t>(index)].kind == NodeKind::kernel;
  }

  void check_shape(const PlanNode& node, const ImageKernel& kernel) {
    if (volume(node.grid) == 0 || node.grid[0] > kMostGridX || node.grid[1] > kMostGridYZ ||
        node.grid[2] > kMostGridYZ)
      return say_here("has a grid of {} blocks; x is 1 to 2^31 - 1, y and z 1 to 65535",
                      text_of(node.grid));
    const std::uint64_t threads = volume(node.block);
    if (threads == 0 || node.block[0] > kMostThreads || node.block[1] > kMostThreads ||
        node.block[2] > kMostBlockZ || threads > kMostThreads)
      return say_here("has blocks of {} threads; they have 1 to 1024, z at most 64",
                      text_of(node.block));
    if (threads > static_cast<std::uint64_t>(kernel.resources.max_threads))
      return say_here("has {} threads a block; the kernel is bounded to {}", threads,
                      kernel.resources.max_threads);
    check_cluster(node, kernel);
    check_residence(node, kernel.resources, static_cast<int>(threads));
  }

  void check_cluster(const PlanNode& node, const ImageKernel& kernel) {
    Extent cluster = node.cluster;
    if (!is_absent(kernel.cluster)) {
      if (!is_absent(cluster) && cluster != kernel.cluster)
        return say_here("is launched in clusters of {}, but was compiled for {}", text_of(cluster),
                        text_of(kernel.cluster));
      cluster = kernel.cluster;
    }
    if (is_absent(cluster)) return;
    if (rules_.device.architecture < kFirstWithClusters)
      return say_here("uses clusters, which the device does not have");
    if (volume(cluster) == 0 || volume(cluster) > kMostCluster)
      return say_here("has clusters of {} blocks; they have 1 to 16", text_of(cluster));
    for (std::size_t i = 0; i < 3; ++i)
      if (node.grid[i] % cluster[i] != 0)
        return say_here("has a grid of {} blocks, which clusters of {} do not divide",
                        text_of(node.grid), text_of(cluster));
  }

  void check_residence(const PlanNode& node, const KernelResources& kernel, int threads) {
    const std::int64_t shared = kernel.static_shared_bytes + node.dynamic_shared_bytes;
    if (shared > rules_.device.shared_bytes_per_block)
      return say_here(
          "needs {} bytes of shared memory a block ({} dynamic, {} static); the device has {}",
          shared, node.dynamic_shared_bytes, kernel.static_shared_bytes,
          rules_.device.shared_bytes_per_block);
    const int resident = resident_blocks(kernel, rules_.device, threads, node.dynamic_shared_bytes);
    if (resident == 0)
      return say_here(
          "cannot run: {} registers for each of {} threads are more than a multiprocessor has",
          kernel.registers, threads);
    const std::uint64_t at_once =
        static_cast<std::uint64_t>(resident) *
        static_cast<std::uint64_t>(std::max(0, rules_.device.multiprocessors));
    if (node.cooperative && volume(node.grid) > at_once)
      say_here("is cooperative with {} blocks; only {} are resident at once", volume(node.grid),
               at_once);
  }

  void check_arguments(const PlanNode& node, const ImageKernel& kernel) {
    if (node.arguments.size() != kernel.parameter_sizes.size())
      return say_here("passes {} arguments; the kernel has {} parameters", node.arguments.size(),
                      kernel.parameter_sizes.size());
    for (std::size_t i = 0; i < node.arguments.size(); ++i) {
      const PlanArgument& argument = node.arguments[i];
      if (argument.size != kernel.parameter_sizes[i])
        say_here("passes {} bytes as argument {}; the kernel's parameter has {}", argument.size, i,
                 kernel.parameter_sizes[i]);
      else
        check_argument(argument, i);
    }
  }

  void check_argument(const PlanArgument& argument, std::size_t index) {
    const auto id_within = [&](std::size_t count) {
      return argument.id >= 0 && static_cast<std::size_t>(argument.id) < count;
    };
    switch (argument.kind) {
      case KBEAM_VALUE:
        if (argument.value.size() != argument.size)
          say_here("has {} bytes for the {} of argument {}", argument.value.size(), argument.size,
                   index);
        return;
      case KBEAM_ADDRESS:
        if (argument.size != sizeof(void*)) say_here("passes an address as argument {}", index);
        is_inside(argument.address, 0, fmt::format("argument {}", index).c_str());
        return;
      case KBEAM_TENSOR_MAP:
        if (argument.size != kTensorMapBytes || !id_within(plan_.tensor_maps.size()))
          say_here("passes a tensor map that the plan does not have as argument {}", index);
        return;
      case KBEAM_CONDITION:
        if (argument.size != sizeof(std::uint64_t) || !id_within(plan_.conditions.size()))
          say_here("passes a condition that the plan does not have as argument {}", index);
    }
  }

  void check_transfer(const PlanNode& node) {
    if (node.bytes < 1) return say_here("moves {} bytes", node.bytes);
    if (!is_target(node.to, node.bytes, "target") || node.kind == NodeKind::fill) return;
    if (!is_inside(node.from, node.bytes, "source")) return;
    const std::int64_t apart = node.from.offset_bytes - node.to.offset_bytes;
    if (node.from.buffer == node.to.buffer && apart < node.bytes && -apart < node.bytes)
      say_here("copies between places that overlap");
  }

  void check_gemm(const PlanNode::GemmCall& gemm) {
    const bool f64 = gemm.type_a_b == KBEAM_GEMM_F64;
    const bool narrow = gemm.type_a_b == KBEAM_GEMM_F16 || gemm.type_a_b == KBEAM_GEMM_BF16;
    const bool f32 = gemm.type_a_b == KBEAM_GEMM_F32;
    const bool types_fit =
        (f64 && gemm.type_c == KBEAM_GEMM_F64 && gemm.compute == KBEAM_COMPUTE_F64) ||
        (f32 && gemm.type_c == KBEAM_GEMM_F32 &&
         (gemm.compute == KBEAM_COMPUTE_F32 || gemm.compute == KBEAM_COMPUTE_TF32)) ||
        (narrow && (gemm.type_c == gemm.type_a_b || gemm.type_c == KBEAM_GEMM_F32) &&
         gemm.compute == KBEAM_COMPUTE_F32);
    if (!types_fit) return say_here("combines types that the library does not multiply");
    constexpr std::int64_t kMost = 0x7fffffff;
    for (const std::int64_t size : {gemm.m, gemm.n, gemm.k, gemm.batch})
      if (size < 1 || size > kMost)
        return say_here("multiplies {} x {} x {}, {} times", gemm.m, gemm.n, gemm.k, gemm.batch);
    if (gemm.batch > 1 && gemm.stride_c == 0)
      return say_here("writes every product of its batch to the same place");
    const std::int64_t bytes = bytes_of(gemm.type_a_b);
    if (!check_matrix(gemm, {"A", gemm.a, gemm.transpose_a ? gemm.k : gemm.m,
                             gemm.transpose_a ? gemm.m : gemm.k, gemm.lda, gemm.stride_a, bytes}) ||
        !check_matrix(gemm, {"B", gemm.b, gemm.transpose_b ? gemm.n : gemm.k,
                             gemm.transpose_b ? gemm.k : gemm.n, gemm.ldb, gemm.stride_b, bytes}) ||
        !check_matrix(
            gemm, {"C", gemm.c, gemm.m, gemm.n, gemm.ldc, gemm.stride_c, bytes_of(gemm.type_c)}))
      return;
    is_target(gemm.c, 0, "C");
  }

  struct Matrix {
    const char* name;
    BufferPlace place;
    std::int64_t rows, columns, leading, stride, element_bytes;
  };
  bool check_matrix(const PlanNode::GemmCall& gemm, const Matrix& matrix) {
    constexpr std::int64_t kMost = 1LL << 40;  // keeps the products below within 128 bits
    if (matrix.leading < matrix.rows || matrix.leading > kMost || matrix.stride < 0 ||
        matrix.stride > kMost) {
      say_here("has a matrix {} of {} rows with leading dimension {} and stride {}", matrix.name,
               matrix.rows, matrix.leading, matrix.stride);
      return false;
    }
    const auto last = static_cast<__int128>(matrix.leading) * (matrix.columns - 1) + matrix.rows +
                      static_cast<__int128>(matrix.stride) * (gemm.batch - 1);
    const __int128 bytes = last * matrix.element_bytes;
    constexpr std::int64_t kTooMany = INT64_MAX;
    return is_inside(matrix.place, bytes > kTooMany ? kTooMany : static_cast<std::int64_t>(bytes),
                     fmt::format("matrix {}", matrix.name).c_str());
  }

  void check_vendor_call(const PlanNode& node) {
    constexpr std::size_t kMost = 64;
    if (node.routine.empty() || node.routine.size() > kMost || node.pointers.size() > kMost ||
        node.numbers.size() > kMost)
      return say_here("calls a library routine with too many arguments, or with none named");
    for (const BufferPlace& place : node.pointers) is_inside(place, 0, "pointer");
  }

  // A handle that no conditional node uses makes the driver refuse the graph; so does one that two
  // use.
  void check_conditions() {
    std::vector<int> users(plan_.conditions.size(), 0);
    for (const PlanNode& node : plan_.nodes)
      if (node.kind == NodeKind::conditional && node.condition >= 0 &&
          static_cast<std::size_t>(node.condition) < users.size())
        ++users[static_cast<std::size_t>(node.condition)];
    for (std::size_t i = 0; i < users.size(); ++i)
      if (users[i] != 1)
        say("condition {} is asked by {} conditional nodes; each condition belongs to exactly one",
            i, users[i]);
  }

  const LaunchPlan& plan_;
  const PlanRules& rules_;
  std::size_t node_ = 0;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<PlanBuffer> given_buffers(PlanEntry entry, const std::vector<TensorShape>& tensors) {
  std::vector<PlanBuffer> buffers;
  for (const TensorShape& tensor : tensors) {
    const bool is_input = tensor.role == KBEAM_INPUT;
    // A generator sees no outputs; a checker only reads.
    if (entry == PlanEntry::generate && !is_input) continue;
    const bool is_read = entry == PlanEntry::check || (entry == PlanEntry::candidate && is_input);
    buffers.push_back(
        {is_read ? BufferKind::input : BufferKind::output, tensor.name, tensor.bytes(), {}});
  }
  if (entry != PlanEntry::candidate)
    buffers.push_back({BufferKind::control, "kbeam.control", kControlBytes, {}});
  return buffers;
}

std::vector<std::string> find_plan_mistakes(const LaunchPlan& plan, const PlanRules& rules) {
  return Inspection(plan, rules).run();
}

std::string name_of_node(const LaunchPlan& plan, std::size_t index) {
  const PlanNode& node = plan.nodes[index];
  if (node.kind != NodeKind::kernel)
    return fmt::format("node {} ({})", index, to_string(node.kind));
  constexpr std::size_t kLongest = 80;
  std::string name = node.kernel_name.empty() ? node.kernel : node.kernel_name;
  if (name.size() > kLongest) name = name.substr(0, kLongest) + "...";
  return fmt::format("node {} ({})", index, name);
}

}  // namespace kbeam
