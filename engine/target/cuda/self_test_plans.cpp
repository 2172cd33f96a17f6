#include "target/cuda/self_test_plans.h"

#include <cuda.h>

#include <cstring>

#include "base/check.h"
#include "target/cuda/kernels/self_test_layout.h"

namespace kbeam::self_test {
namespace {

constexpr std::int64_t kTensorBytes = std::int64_t{kElements} * 4;
constexpr std::int64_t kMarkBytes = std::int64_t{kMarks} * 4;

template <typename T>
PlanArgument value(const T& bytes) {
  PlanArgument argument;
  argument.size = sizeof(T);
  argument.value.assign(reinterpret_cast<const char*>(&bytes), sizeof(T));
  return argument;
}
PlanArgument address(int buffer, std::int64_t offset_bytes = 0) {
  PlanArgument argument;
  argument.kind = KBEAM_ADDRESS;
  argument.size = sizeof(CUdeviceptr);
  argument.address = {buffer, offset_bytes};
  return argument;
}
PlanArgument symbol(kbeam_argument_kind kind, std::uint32_t size, int id) {
  PlanArgument argument;
  argument.kind = kind;
  argument.size = size;
  argument.id = id;
  return argument;
}

// Records nodes one after the other, each waiting for the one before it in its body.
class Writer {
 public:
  Writer() { plan_.image_hash = kImageHash; }

  int buffer(BufferKind kind, const std::string& name, std::int64_t bytes,
             const std::string& content = "") {
    plan_.buffers.push_back({kind, name, bytes, content});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  // Blocks and threads along x; further fields are set on what is returned.
  PlanNode& launch(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads,
                   std::vector<PlanArgument> arguments) {
    PlanNode& node = add(NodeKind::kernel);
    node.kernel = node.kernel_name = kernel;
    node.grid = {blocks, 1, 1};
    node.block = {threads, 1, 1};
    node.arguments = std::move(arguments);
    return node;
  }
  void fill(BufferPlace to, std::int64_t bytes, std::uint8_t byte) {
    PlanNode& node = add(NodeKind::fill);
    node.to = to;
    node.bytes = bytes;
    node.byte_value = byte;
  }
  void copy(BufferPlace to, BufferPlace from, std::int64_t bytes) {
    PlanNode& node = add(NodeKind::copy);
    node.to = to;
    node.from = from;
    node.bytes = bytes;
  }
  PlanNode& add(NodeKind kind) {
    PlanNode node;
    node.kind = kind;
    node.body = body_;
    for (int i = static_cast<int>(plan_.nodes.size()) - 1; i >= 0; --i)
      if (plan_.nodes[static_cast<std::size_t>(i)].body == body_) {
        node.after = {i};
        break;
      }
    return plan_.nodes.emplace_back(node);
  }
  void begin_if(int condition) {
    PlanNode& node = add(NodeKind::conditional);
    node.condition = condition;
    node.has_otherwise = true;
    body_ = 2 * (static_cast<int>(plan_.nodes.size()) - 1);
  }
  void begin_else() { ++body_; }
  void end_if() { body_ = -1; }

  LaunchPlan& plan() { return plan_; }

 private:
  LaunchPlan plan_;
  int body_ = -1;
};

struct Buffers {
  int a, y, marks;
};

Buffers add_tensors(Writer& writer) {
  return {writer.buffer(BufferKind::input, "A", kTensorBytes),
          writer.buffer(BufferKind::output, "Y", kTensorBytes),
          writer.buffer(BufferKind::output, "marks", kMarkBytes)};
}

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kBlocks = kElements / kThreads;

PlanArgument mark(const Buffers& buffers, int index) {
  return address(buffers.marks, std::int64_t{index} * 4);
}

void add_affine(Writer& writer, const Buffers& buffers, int elements) {
  Affine affine{};
  std::memset(static_cast<void*>(&affine), 0, sizeof(affine));
  for (float& scale : affine.scale) scale = 1;
  affine.elements = elements;
  affine.offset = 1;
  writer.launch("st_affine", kBlocks, kThreads,
                {address(buffers.a), address(buffers.y), value(affine)});
}

void add_conditional(Writer& writer, const Buffers& buffers, std::uint32_t decision, int at) {
  const int condition = static_cast<int>(writer.plan().conditions.size());
  writer.plan().conditions.push_back(0);
  writer.launch("st_decide", 1, 1, {symbol(KBEAM_CONDITION, 8, condition), value(decision)});
  writer.begin_if(condition);
  writer.launch("st_store", 1, 1, {mark(buffers, at), value(std::uint32_t{111})});
  writer.begin_else();
  writer.launch("st_store", 1, 1, {mark(buffers, at), value(std::uint32_t{222})});
  writer.end_if();
}

void add_tile(Writer& writer, const Buffers& buffers) {
  PlanTensorMap map;
  map.base = {buffers.a, 0};
  map.data_type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  map.rank = 2;
  map.dim = {kSide, kSide};
  map.stride_bytes = {0, kSide * 4};
  map.box = {kBox, kBox};
  map.element_stride = {1, 1};
  writer.plan().tensor_maps.push_back(map);
  writer.launch("st_tile", 1, 128,
                {symbol(KBEAM_TENSOR_MAP, sizeof(CUtensorMap), 0), address(buffers.a),
                 mark(buffers, kTile), value(int{64}), value(int{96})});
}

// Scratch by fill node and by copy node, counted by a kernel in scratch that starts at zero.
void add_scratch(Writer& writer, const Buffers& buffers) {
  const auto bytes = static_cast<std::int64_t>(kScratchBytes);
  const int from = writer.buffer(BufferKind::scratch, "scratch 0", bytes);
  const int to = writer.buffer(BufferKind::scratch, "scratch 1", bytes);
  const int sum = writer.buffer(BufferKind::zeroed_scratch, "scratch 2", 4);
  writer.fill({from, 0}, bytes, kScratchByte);
  writer.copy({to, 0}, {from, 0}, bytes);
  writer.launch("st_count_words", 64, kThreads,
                {address(to), value(std::uint64_t{kScratchBytes / 4}),
                 value(std::uint32_t{kScratchByte * 0x01010101u}), address(sum)});
  writer.launch("st_publish", 1, 1, {address(sum), mark(buffers, kScratch)});
}

LaunchPlan tour() {
  Writer writer;
  const Buffers buffers = add_tensors(writer);
  const int data = writer.buffer(BufferKind::scratch, "scratch", 64 * 4);
  const int counter = writer.buffer(BufferKind::zeroed_scratch, "counter", 4);
  const std::uint32_t table[4] = {10, 20, 30, 0};
  const int numbers =
      writer.buffer(BufferKind::table, "table 0", sizeof(table),
                    std::string(reinterpret_cast<const char*>(table), sizeof(table)));
  writer.fill({buffers.marks, 0}, kMarkBytes, kFilledWord & 0xff);
  writer.copy({buffers.y, 0}, {buffers.a, 0}, kTensorBytes);
  add_affine(writer, buffers, kElements);
  writer.launch("st_rotate", 64, 64, {mark(buffers, kCluster4)}).cluster = {4, 1, 1};
  writer.launch("st_rotate", 32, 64, {mark(buffers, kCluster16)}).cluster = {16, 1, 1};
  writer.launch("st_pair", 8, 32, {mark(buffers, kFixedCluster)});
  writer.launch("st_early", 64, 32,
                {address(data), value(std::uint32_t{kEarlyValue}), value(std::uint64_t{50'000})});
  writer.launch("st_late", 64, 32, {address(data), mark(buffers, kLate)}).overlap_previous = true;
  writer
      .launch("st_everyone", kCooperativeBlocks, 256,
              {address(counter), mark(buffers, kCooperative)})
      .cooperative = true;
  writer.launch("st_big_shared", 16, 256, {mark(buffers, kBigShared)}).dynamic_shared_bytes =
      kSharedWords * 4;
  add_tile(writer, buffers);
  writer.launch("st_count", 1, 1, {mark(buffers, kCounters)});
  add_conditional(writer, buffers, 1, kTaken);
  add_conditional(writer, buffers, 0, kNotTaken);
  writer.launch("st_sum_table", 1, 1, {address(numbers), value(int{4}), mark(buffers, kTable)});
  add_scratch(writer, buffers);
  return writer.plan();
}

LaunchPlan library_subject(const std::string& name) {
  Writer writer;
  writer.plan().image_hash = "";
  const Buffers buffers = add_tensors(writer);
  writer.fill({buffers.marks, 0}, kMarkBytes, kFilledWord & 0xff);
  if (name == "gemm") {
    PlanNode::GemmCall& gemm = writer.add(NodeKind::gemm).gemm;
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = kSide;
    gemm.batch = 1;
    gemm.stride_a = gemm.stride_b = gemm.stride_c = kElements;
    gemm.a = gemm.b = {buffers.a, 0};
    gemm.c = {buffers.y, 0};
    return writer.plan();
  }
  const int tau = writer.buffer(BufferKind::scratch, "tau", kMatrices * kMatrixSide * 4);
  writer.copy({buffers.y, 0}, {buffers.a, 0}, kTensorBytes);
  PlanNode& call = writer.add(NodeKind::vendor_call);
  call.routine = name;
  call.pointers = {{buffers.y, 0}, {tau, 0}};
  call.numbers = {kMatrixSide, kMatrixSide, kMatrixSide, kMatrices, kMatrixSide * kMatrixSide,
                  kMatrixSide};
  return writer.plan();
}

// The right answer, and then something else.
LaunchPlan misbehaving(const std::string& name) {
  Writer writer;
  const Buffers buffers = add_tensors(writer);
  writer.fill({buffers.marks, 0}, kMarkBytes, kFilledWord & 0xff);
  add_affine(writer, buffers, name == "unwritten" ? kElements - 100 : kElements);
  const auto set = [&](const PlanArgument& at) { writer.launch("st_set", 1, 1, {at, value(5.f)}); };
  if (name == "wrong_value") set(address(buffers.y, 777 * 4));
  if (name == "outside") set(address(buffers.y, kTensorBytes));
  if (name == "mutates") set(address(buffers.a, 5 * 4));
  if (name == "far_outside") set(value(std::uint64_t{16}));
  if (name == "hangs") writer.launch("st_hang", 1, 1, {address(buffers.a)});
  if (name == "ends_early") {
    const int data = writer.buffer(BufferKind::scratch, "scratch", 4);
    writer.launch("st_early", 1, 32,
                  {address(data), value(std::uint32_t{1}), value(std::uint64_t{kEarlyEndNs})});
    writer.launch("st_return", 1, 1, {address(data)}).overlap_previous = true;
  }
  if (name == "bad_parameter") writer.launch("st_set", 1, 1, {address(buffers.y), value(5.0)});
  if (name == "reads" || name == "pins") {
    const int data =
        writer.buffer(BufferKind::scratch, "scratch", static_cast<std::int64_t>(kStreamBytes));
    const int sink = writer.buffer(BufferKind::scratch, "sink", 4);
    writer.launch("st_read", 1056, kThreads,
                  {address(data), value(std::uint64_t{kStreamBytes / 16}),
                   value(int{name == "pins" ? 1 : 0}), address(sink)});
  }
  return writer.plan();
}

}  // namespace

std::vector<TensorShape> tensors() {
  return {{"A", KBEAM_INPUT, KBEAM_F32, {kElements}, {1}},
          {"Y", KBEAM_OUTPUT, KBEAM_F32, {kElements}, {1}},
          {"marks", KBEAM_OUTPUT, KBEAM_I32, {kMarks}, {1}}};
}

LaunchPlan generate_plan() {
  Writer writer;
  const int a = writer.buffer(BufferKind::output, "A", kTensorBytes);
  const int control = writer.buffer(BufferKind::control, "kbeam.control", 16);
  writer.launch("st_generate", kBlocks, kThreads, {address(control), address(a)});
  return writer.plan();
}

LaunchPlan check_plan(Relation relation) {
  Writer writer;
  const Buffers buffers = add_tensors(writer);
  const int figures = writer.buffer(BufferKind::figures, "kbeam.figures", 16);
  const bool affine = relation == Relation::affine || relation == Relation::tour;
  const char* kernel = affine                          ? "st_check_affine"
                       : relation == Relation::product ? "st_check_product"
                                                       : "st_check_factor";
  writer.launch(kernel, kBlocks, kThreads,
                {address(buffers.a), address(buffers.y), address(figures)});
  PlanFigure figure;
  figure.name = affine ? "difference" : "relative_difference";
  figure.limit = affine ? 1e-6 : 1e-4;
  figure.radix_names = {affine ? "element" : relation == Relation::product ? "entry" : "matrix"};
  figure.radices = {kElements};
  writer.plan().figures.push_back(figure);
  if (relation == Relation::tour) {
    writer.launch("st_check_marks", kMarks / kThreads, kThreads,
                  {address(buffers.marks), address(figures, 8)});
    figure.name = "wrong_marks";
    figure.limit = 0;
    figure.radix_names = {"mark"};
    figure.radices = {kMarks};
    writer.plan().figures.push_back(figure);
  }
  return writer.plan();
}

LaunchPlan subject_plan(const std::string& name) {
  if (name == "tour") return tour();
  if (name == "gemm" || name.find('.') != std::string::npos) return library_subject(name);
  return misbehaving(name);
}

}  // namespace kbeam::self_test
