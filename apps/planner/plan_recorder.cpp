#include "planner/plan_recorder.h"

#include <fmt/format.h>
#include <kbeam/byte_counts.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <string_view>

#include "base/defence.h"
#include "base/spelling.h"
#include "planner/cuda_registration.h"
#include "target/cuda/occupancy.h"

namespace kbeam::planner {
namespace {

constexpr std::size_t kMostMistakes = 8;
constexpr std::uint32_t kMostArguments = 1024;
constexpr std::uint32_t kMostArgumentBytes = 32764;  // the limit of all parameters together
constexpr std::int32_t kMostWaits = 100'000;
constexpr std::size_t kMostParts = 4096;
constexpr std::size_t kLongestText = 1000;
constexpr std::int64_t kScratchUnit = 256;
constexpr std::int64_t kMost32 = std::numeric_limits<std::uint32_t>::max();

// Thrown through the plan function when going on makes no sense.
struct Abandoned {};

const char* type_name(int type) {
  static constexpr const char* kNames[] = {"float", "double", "int32_t", "int64_t"};
  return type >= 0 && type < 4 ? kNames[type] : "something else";
}

std::string bounded(const char* text) {
  return text == nullptr ? std::string() : std::string(text, strnlen(text, kLongestText));
}

// For "... more bytes": the contract's headers stop at the end of 64 bits.
std::string spell_bytes(std::int64_t bytes) {
  return bytes == detail::kMostBytes ? "2^63 or" : std::to_string(bytes);
}

BufferPlace place_of(const kbeam_pointer& pointer) {
  return {pointer.buffer, pointer.offset_bytes};
}

std::string advice(const std::string& name, const std::vector<std::string>& known) {
  if (const auto close = closest_word(name, known)) return "; did you mean " + *close + "?";
  std::string all;
  for (const std::string& one : known) all += (all.empty() ? "; there are: " : ", ") + one;
  return all;
}

class Recorder {
 public:
  Recorder(const RecorderWorld& world, const RecorderRequest& request)
      : world_(world), request_(request) {
    recording_.plan.buffers = request.buffers;
  }

  kbeam_cuda_host host();
  static Recorder& me(void* self) { return *static_cast<Recorder*>(self); }
  Recording finish() {
    if (bodies_.size() > 1) complain("a conditional body is not closed");
    return std::move(recording_);
  }
  void complain(std::string sentence) {
    if (recording_.mistakes.size() < kMostMistakes)
      recording_.mistakes.push_back(std::move(sentence));
    if (recording_.mistakes.size() == kMostMistakes) throw Abandoned();
  }
  void run_out_of_memory() { recording_.out_of_memory = true; }

 private:
  // One list of nodes that follow each other: the plan itself or a body of a conditional node.
  struct Body {
    int id = -1;
    int last = -1;
    int conditional = -1;
  };

  template <typename... T>
  void complain(fmt::format_string<T...> format, T&&... values) {
    complain(fmt::format(format, std::forward<T>(values)...));
  }
  [[noreturn]] void abandon(std::string sentence) {
    if (recording_.mistakes.size() < kMostMistakes)
      recording_.mistakes.push_back(std::move(sentence));
    throw Abandoned();
  }

  std::int32_t find_buffer(const char* name, std::int32_t role, std::int32_t type,
                           kbeam_buffer* found);
  std::int64_t axis(const char* name) const;
  const char* text(const char* key);
  std::int32_t scratch(std::int64_t bytes, BufferKind kind);
  std::int32_t table(const void* content, std::int64_t bytes);
  std::int32_t tensor_map(const kbeam_tensor_map& request);
  std::int32_t condition(std::uint32_t initial);
  std::int32_t figure(const kbeam_figure& request, kbeam_pointer* cell);
  std::int32_t resident(const void* kernel, std::int32_t threads, std::int64_t shared_bytes);
  std::int32_t launch(const kbeam_launch& request);
  std::array<std::uint32_t, 3> extent(const std::int64_t (&given)[3],
                                      fmt::format_string<std::string> what);
  std::int32_t gemm(const kbeam_gemm& request);
  std::int32_t vendor_call(const kbeam_vendor_call& request);
  std::int32_t begin_if(std::int32_t condition, std::int32_t has_else, const kbeam_after& after);
  void begin_else();
  void end_if();
  void note(const char* key, const char* value);
  void fail(std::int32_t kind, const char* message);

  // Where the next buffer of a kind of the plan's own would stand.
  std::int32_t add_buffer(BufferKind kind, const char* word, std::int64_t bytes,
                          std::string content);
  PlanArgument bind(const kbeam_argument& argument, std::uint32_t index);
  std::vector<int> waits(const kbeam_after& after);
  std::int32_t add_node(PlanNode node, const kbeam_after& after);

  const RecorderWorld& world_;
  const RecorderRequest& request_;
  Recording recording_;
  std::vector<Body> bodies_{Body{}};
  std::map<std::string, int> own_buffers_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t table_bytes_ = 0;
  int figures_buffer_ = -1;
};

std::int32_t Recorder::find_buffer(const char* c_name, std::int32_t role, std::int32_t type,
                                   kbeam_buffer* found) {
  const std::string name = bounded(c_name);
  const auto& buffers = recording_.plan.buffers;
  std::vector<std::string> known;
  std::size_t index = 0;
  for (; index < request_.buffers.size(); ++index) {
    if (buffers[index].name == name) break;
    if (buffers[index].kind != BufferKind::control) known.push_back(buffers[index].name);
  }
  if (index == request_.buffers.size())
    abandon("the plan has no tensor " + name + advice(name, known));
  *found = {};
  found->id = static_cast<std::int32_t>(index);
  if (buffers[index].kind == BufferKind::control) return found->id;
  if ((buffers[index].kind == BufferKind::input) != (role == KBEAM_INPUT))
    complain("{} is an {} of this plan: ask for args.{}", name, to_string(buffers[index].kind),
             to_string(buffers[index].kind));
  const auto tensor = std::find_if(request_.tensors.begin(), request_.tensors.end(),
                                   [&](const RecorderTensor& one) { return one.name == name; });
  if (tensor == request_.tensors.end()) abandon("the plan has no tensor " + name);
  if (tensor->type != type)
    complain("{} holds {}, not {}", name, type_name(tensor->type), type_name(type));
  found->rank = static_cast<std::int32_t>(tensor->dims.size());
  for (std::size_t i = 0; i < tensor->dims.size() && i < KBEAM_MAX_RANK; ++i) {
    found->dim[i] = tensor->dims[i];
    found->stride[i] = tensor->strides[i];
  }
  return found->id;
}

std::int64_t Recorder::axis(const char* c_name) const {
  const std::string name = bounded(c_name);
  const auto found = request_.axes.find(name);
  if (found != request_.axes.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [axis_name, value] : request_.axes) known.push_back(axis_name);
  const_cast<Recorder*>(this)->abandon("the problem has no axis " + name + advice(name, known));
}

const char* Recorder::text(const char* key) {
  const auto found = request_.texts.find(bounded(key));
  if (found == request_.texts.end())
    abandon("there is no text " + bounded(key) + " for this plan (a candidate's plan has none)");
  return found->second.c_str();
}

std::int32_t Recorder::add_buffer(BufferKind kind, const char* word, std::int64_t bytes,
                                  std::string content) {
  if (recording_.plan.buffers.size() >= kMostParts) abandon("the plan has too many buffers");
  const int number = own_buffers_[word]++;
  recording_.plan.buffers.push_back(
      {kind, fmt::format("{} {}", word, number), bytes, std::move(content)});
  return static_cast<std::int32_t>(recording_.plan.buffers.size() - 1);
}

std::int32_t Recorder::scratch(std::int64_t bytes, BufferKind kind) {
  if (bytes < 0 || bytes > world_.most_scratch_bytes - scratch_bytes_)
    abandon(fmt::format("the plan asks for {} more bytes of scratch after {}; the limit is {}",
                        spell_bytes(bytes), scratch_bytes_, world_.most_scratch_bytes));
  // Whoever computes a size of 0 for a small shape still gets an address.
  const std::int64_t given = std::max(bytes, kScratchUnit);
  scratch_bytes_ += given;
  return add_buffer(kind, "scratch", given, {});
}

std::int32_t Recorder::table(const void* content, std::int64_t bytes) {
  if (bytes < 1 || bytes > world_.most_table_bytes - table_bytes_)
    abandon(fmt::format("the plan asks for a table of {} bytes after {}; the limit is {}", bytes,
                        table_bytes_, world_.most_table_bytes));
  table_bytes_ += bytes;
  return add_buffer(
      BufferKind::table, "table", bytes,
      std::string(static_cast<const char*>(content), static_cast<std::size_t>(bytes)));
}

std::int32_t Recorder::tensor_map(const kbeam_tensor_map& request) {
  if (recording_.plan.tensor_maps.size() >= kMostParts)
    abandon("the plan has too many tensor maps");
  PlanTensorMap map;
  map.base = place_of(request.base);
  map.data_type = request.data_type;
  map.rank = request.rank;
  std::copy(std::begin(request.dim), std::end(request.dim), map.dim.begin());
  std::copy(std::begin(request.stride_bytes), std::end(request.stride_bytes),
            map.stride_bytes.begin());
  std::copy(std::begin(request.box), std::end(request.box), map.box.begin());
  std::copy(std::begin(request.element_stride), std::end(request.element_stride),
            map.element_stride.begin());
  map.interleave = request.interleave;
  map.swizzle = request.swizzle;
  map.l2_promotion = request.l2_promotion;
  map.fill = request.fill;
  recording_.plan.tensor_maps.push_back(map);
  return static_cast<std::int32_t>(recording_.plan.tensor_maps.size() - 1);
}

std::int32_t Recorder::condition(std::uint32_t initial) {
  if (recording_.plan.conditions.size() >= kMostParts) abandon("the plan has too many conditions");
  recording_.plan.conditions.push_back(initial);
  return static_cast<std::int32_t>(recording_.plan.conditions.size() - 1);
}

std::int32_t Recorder::figure(const kbeam_figure& request, kbeam_pointer* cell) {
  auto& plan = recording_.plan;
  if (request_.entry_name != "kbeam_check_plan") abandon("only a check plan has figures");
  if (plan.figures.size() >= kMostParts) abandon("the plan has too many figures");
  if (!std::isfinite(request.limit)) complain("the limit of a figure must be a number");
  PlanFigure figure;
  figure.name = bounded(request.name);
  figure.unit = bounded(request.unit);
  figure.limit = std::isfinite(request.limit) ? request.limit : 0;
  for (int i = 0; i < std::clamp(request.radix_count, 0, 3); ++i) {
    figure.radix_names.push_back(bounded(request.radix_name[i]));
    figure.radices.push_back(request.radix[i]);
  }
  figure.not_finite = request.not_finite != 0;
  plan.figures.push_back(std::move(figure));
  if (figures_buffer_ < 0) figures_buffer_ = add_buffer(BufferKind::figures, "figures", 0, {});
  constexpr std::int64_t kCellBytes = 8;
  const auto count = static_cast<std::int64_t>(plan.figures.size());
  plan.buffers[static_cast<std::size_t>(figures_buffer_)].bytes = count * kCellBytes;
  *cell = {figures_buffer_, (count - 1) * kCellBytes};
  return static_cast<std::int32_t>(count - 1);
}

std::int32_t Recorder::resident(const void* kernel, std::int32_t threads,
                                std::int64_t shared_bytes) {
  const std::string* const name = find_kernel(kernel);
  const auto found = name == nullptr ? world_.kernels.end() : world_.kernels.find(*name);
  if (found == world_.kernels.end()) {
    complain("resident_blocks was asked about a function that is no kernel of this file");
    return 0;
  }
  return resident_blocks(found->second, world_.device, threads, shared_bytes);
}

PlanArgument Recorder::bind(const kbeam_argument& argument, std::uint32_t index) {
  PlanArgument bound;
  bound.kind = static_cast<kbeam_argument_kind>(argument.kind);
  bound.size = argument.size;
  switch (argument.kind) {
    case KBEAM_VALUE:
      if (argument.value == nullptr || argument.size > kMostArgumentBytes)
        complain("argument {} has {} bytes", index, argument.size);
      else
        bound.value.assign(static_cast<const char*>(argument.value), argument.size);
      break;
    case KBEAM_ADDRESS:
      bound.address = place_of(argument.address);
      break;
    case KBEAM_TENSOR_MAP:
    case KBEAM_CONDITION:
      bound.id = argument.id;
      break;
    default:
      bound.kind = KBEAM_VALUE;
      complain("argument {} is of no known kind", index);
  }
  return bound;
}

std::vector<int> Recorder::waits(const kbeam_after& after) {
  const Body& body = bodies_.back();
  if (after.count < 0) return body.last < 0 ? std::vector<int>{} : std::vector<int>{body.last};
  if (after.count > kMostWaits) abandon(fmt::format("a node waits for {} others", after.count));
  std::vector<int> nodes(after.nodes, after.nodes + after.count);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::int32_t Recorder::add_node(PlanNode node, const kbeam_after& after) {
  auto& nodes = recording_.plan.nodes;
  if (static_cast<std::int64_t>(nodes.size()) >= world_.most_nodes)
    abandon(fmt::format("the plan has more than {} nodes", world_.most_nodes));
  node.body = bodies_.back().id;
  node.after = waits(after);
  nodes.push_back(std::move(node));
  bodies_.back().last = static_cast<int>(nodes.size()) - 1;
  return bodies_.back().last;
}

// What the node has room for; whether a device can run it is asked of the whole plan.
std::array<std::uint32_t, 3> Recorder::extent(const std::int64_t (&given)[3],
                                              fmt::format_string<std::string> what) {
  std::array<std::uint32_t, 3> held{};
  bool fits = true;
  for (std::size_t i = 0; i < 3; ++i) {
    fits = fits && given[i] >= 0 && given[i] <= kMost32;
    held[i] = static_cast<std::uint32_t>(std::clamp<std::int64_t>(given[i], 0, kMost32));
  }
  if (!fits)
    complain("node {} has {}", recording_.plan.nodes.size(),
             fmt::format(what, fmt::format("{} x {} x {}", given[0], given[1], given[2])));
  return held;
}

std::int32_t Recorder::launch(const kbeam_launch& request) {
  PlanNode node;
  node.kind = NodeKind::kernel;
  if (const std::string* const name = find_kernel(request.kernel))
    node.kernel = *name;
  else
    complain("node {} launches a function that is no kernel of this file",
             recording_.plan.nodes.size());
  node.grid = extent(request.grid, "a grid of {} blocks; x is 1 to 2^31 - 1, y and z 1 to 65535");
  node.block = extent(request.block, "blocks of {} threads; they have 1 to 1024, z at most 64");
  node.cluster = extent(request.cluster, "clusters of {} blocks; they have 1 to 16");
  if (request.dynamic_shared_bytes < 0 || request.dynamic_shared_bytes > kMost32)
    complain("node {} asks for {} bytes of shared memory", recording_.plan.nodes.size(),
             request.dynamic_shared_bytes);
  else
    node.dynamic_shared_bytes = static_cast<std::uint32_t>(request.dynamic_shared_bytes);
  node.cooperative = request.cooperative != 0;
  node.overlap_previous = request.overlap_previous != 0;
  node.shared_carveout_percent = request.shared_carveout_percent;
  if (request.argument_count > kMostArguments)
    abandon(fmt::format("a launch has {} arguments", request.argument_count));
  for (std::uint32_t i = 0; i < request.argument_count; ++i)
    node.arguments.push_back(bind(request.arguments[i], i));
  return add_node(std::move(node), request.after);
}

std::int32_t Recorder::gemm(const kbeam_gemm& request) {
  PlanNode node;
  node.kind = NodeKind::gemm;
  node.gemm = {.transpose_a = request.transpose_a != 0,
               .transpose_b = request.transpose_b != 0,
               .m = request.m,
               .n = request.n,
               .k = request.k,
               .batch = request.batch,
               .type_a_b = request.type_a_b,
               .type_c = request.type_c,
               .compute = request.compute,
               .alpha = request.alpha,
               .beta = request.beta,
               .a = place_of(request.a),
               .b = place_of(request.b),
               .c = place_of(request.c),
               .lda = request.lda,
               .ldb = request.ldb,
               .ldc = request.ldc,
               .stride_a = request.stride_a,
               .stride_b = request.stride_b,
               .stride_c = request.stride_c};
  if (!std::isfinite(request.alpha) || !std::isfinite(request.beta))
    complain("a gemm has a factor that is no number");
  return add_node(std::move(node), request.after);
}

std::int32_t Recorder::vendor_call(const kbeam_vendor_call& request) {
  if (request.pointer_count > kMostArguments || request.number_count > kMostArguments)
    abandon("a vendor call has too many arguments");
  PlanNode node;
  node.kind = NodeKind::vendor_call;
  node.routine = bounded(request.routine);
  for (std::uint32_t i = 0; i < request.pointer_count; ++i)
    node.pointers.push_back(place_of(request.pointers[i]));
  node.numbers.assign(request.numbers, request.numbers + request.number_count);
  return add_node(std::move(node), request.after);
}

std::int32_t Recorder::begin_if(std::int32_t condition, std::int32_t has_else,
                                const kbeam_after& after) {
  constexpr std::size_t kDeepest = 8;
  if (bodies_.size() >= kDeepest) abandon("conditional bodies are nested too deep");
  PlanNode node;
  node.kind = NodeKind::conditional;
  node.condition = condition;
  node.has_otherwise = has_else != 0;
  const std::int32_t id = add_node(std::move(node), after);
  bodies_.push_back({.id = 2 * id, .last = -1, .conditional = id});
  return id;
}

void Recorder::begin_else() {
  Body& body = bodies_.back();
  if (body.conditional < 0 || body.id % 2 != 0) abandon("an else body belongs to no if");
  body.id += 1;
  body.last = -1;
}

void Recorder::end_if() {
  if (bodies_.back().conditional < 0) abandon("a conditional body ends that did not begin");
  bodies_.pop_back();
}

void Recorder::note(const char* key, const char* value) {
  if (recording_.plan.notes.size() >= kMostParts) abandon("the plan has too many notes");
  recording_.plan.notes[bounded(key)] = bounded(value);
}

void Recorder::fail(std::int32_t kind, const char* message) {
  if (kind != KBEAM_NOT_SUPPORTED) return complain(bounded(message));
  if (!recording_.not_supported) recording_.not_supported = bounded(message);
}

kbeam_cuda_host Recorder::host() {
  kbeam_cuda_host table{};
  table.abi = KBEAM_CUDA_ABI;
  table.self = this;
  table.device = &world_.device;
  table.find_buffer = [](void* self, const char* name, std::int32_t role, std::int32_t type,
                         kbeam_buffer* found) {
    return me(self).find_buffer(name, role, type, found);
  };
  table.axis = [](void* self, const char* name) { return me(self).axis(name); };
  table.text = [](void* self, const char* key) { return me(self).text(key); };
  table.scratch = [](void* self, std::int64_t bytes, std::int32_t zeroed) {
    return me(self).scratch(bytes, zeroed != 0 ? BufferKind::zeroed_scratch : BufferKind::scratch);
  };
  table.table = [](void* self, const void* content, std::int64_t bytes) {
    return me(self).table(content, bytes);
  };
  table.tensor_map = [](void* self, const kbeam_tensor_map* request) {
    return me(self).tensor_map(*request);
  };
  table.condition = [](void* self, std::uint32_t initial) { return me(self).condition(initial); };
  table.figure = [](void* self, const kbeam_figure* figure, kbeam_pointer* cell) {
    return me(self).figure(*figure, cell);
  };
  table.resident_blocks = [](void* self, const void* kernel, std::int32_t threads,
                             std::int64_t shared_bytes) {
    return me(self).resident(kernel, threads, shared_bytes);
  };
  table.launch = [](void* self, const kbeam_launch* launch) { return me(self).launch(*launch); };
  table.fill = [](void* self, kbeam_pointer to, std::int64_t bytes, std::uint32_t byte_value,
                  kbeam_after after) {
    PlanNode node;
    node.kind = NodeKind::fill;
    node.to = place_of(to);
    node.bytes = bytes;
    node.byte_value = static_cast<std::uint8_t>(byte_value);
    return me(self).add_node(std::move(node), after);
  };
  table.copy = [](void* self, kbeam_pointer to, kbeam_pointer from, std::int64_t bytes,
                  kbeam_after after) {
    PlanNode node;
    node.kind = NodeKind::copy;
    node.to = place_of(to);
    node.from = place_of(from);
    node.bytes = bytes;
    return me(self).add_node(std::move(node), after);
  };
  table.gemm = [](void* self, const kbeam_gemm* gemm) { return me(self).gemm(*gemm); };
  table.vendor_call = [](void* self, const kbeam_vendor_call* call) {
    return me(self).vendor_call(*call);
  };
  table.begin_if = [](void* self, std::int32_t condition, std::int32_t has_else,
                      kbeam_after after) { return me(self).begin_if(condition, has_else, after); };
  table.begin_else = [](void* self) { me(self).begin_else(); };
  table.end_if = [](void* self) { me(self).end_if(); };
  table.note = [](void* self, const char* key, const char* value) { me(self).note(key, value); };
  table.fail = [](void* self, std::int32_t kind, const char* message) {
    me(self).fail(kind, message);
  };
  return table;
}

}  // namespace

Recording record_plan(kbeam_cuda_plan_function* function, const RecorderWorld& world,
                      const RecorderRequest& request) {
  Recorder recorder(world, request);
  const kbeam_cuda_host host = recorder.host();
  const int launches = host_launches();
  try {
    function(&host);
    if (host_launches() != launches && defence_is_on(Defence::host_launches))
      recorder.complain("launches a kernel from the host; a plan records it with plan.launch");
  } catch (const Abandoned&) {
  } catch (const std::bad_alloc&) {
    recorder.run_out_of_memory();
  } catch (const std::exception& exception) {
    try {
      recorder.complain("the plan function threw: " + bounded(exception.what()));
    } catch (const Abandoned&) {
    }
  } catch (...) {
    try {
      recorder.complain("the plan function threw something");
    } catch (const Abandoned&) {
    }
  }
  try {
    return recorder.finish();
  } catch (const Abandoned&) {
    return recorder.finish();
  }
}

}  // namespace kbeam::planner
