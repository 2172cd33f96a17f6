// LaunchPlan: what a CUDA candidate wants launched for one shape, as data. The planner writes it,
// the engine validates it, the worker replays it; nobody runs candidate host code to use it.
#pragma once

#include <kbeam/launch_abi.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kbeam {

enum class BufferKind { input, output, scratch, zeroed_scratch, table, control, figures };

struct PlanBuffer {
  BufferKind kind = BufferKind::scratch;
  std::string name;  // of the problem's tensor; "scratch 0", "table 1" for the plan's own
  std::int64_t bytes = 0;
  std::string content;  // tables: the bytes
};

struct BufferPlace {
  int buffer = -1;  // index into LaunchPlan::buffers
  std::int64_t offset_bytes = 0;
  bool operator==(const BufferPlace&) const = default;
};

struct PlanArgument {
  kbeam_argument_kind kind = KBEAM_VALUE;
  std::uint32_t size = 0;
  std::string value;    // KBEAM_VALUE: the bytes
  BufferPlace address;  // KBEAM_ADDRESS
  int id = -1;          // KBEAM_TENSOR_MAP, KBEAM_CONDITION
};

struct PlanTensorMap {
  BufferPlace base;
  int data_type = 0;  // CUtensorMapDataType
  int rank = 0;
  std::array<std::uint64_t, 5> dim{};
  std::array<std::uint64_t, 5> stride_bytes{};
  std::array<std::uint32_t, 5> box{};
  std::array<std::uint32_t, 5> element_stride{};
  int interleave = 0;
  int swizzle = 0;
  int l2_promotion = 0;
  int fill = 0;
};

struct PlanFigure {  // of a check plan; its cell is the i-th of the `figures` buffer
  std::string name;
  std::string unit;
  double limit = 0;
  std::vector<std::string> radix_names;
  std::vector<std::int64_t> radices;
  bool not_finite = false;
};

enum class NodeKind { kernel, fill, copy, gemm, vendor_call, conditional };

// One node. Only the fields of its kind are set. A tagged struct rather than a variant: it is
// written, compared and read by field.
struct PlanNode {
  NodeKind kind = NodeKind::kernel;
  // The body that it belongs to: -1 the plan itself, else 2 x (conditional node) + (0: then, 1:
  // otherwise).
  int body = -1;
  std::vector<int> after;  // nodes of the same body; always explicit here

  // kernel
  std::string kernel;       // mangled, as in the image
  std::string kernel_name;  // for people and golden plans: demangled, without the compiler's hash
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{0, 0, 0};
  std::uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool overlap_previous = false;
  int shared_carveout_percent = -1;
  std::vector<PlanArgument> arguments;

  // fill, copy
  BufferPlace to;
  BufferPlace from;
  std::int64_t bytes = 0;
  std::uint8_t byte_value = 0;

  // gemm
  struct GemmCall {
    bool transpose_a = false;
    bool transpose_b = false;
    std::int64_t m = 0, n = 0, k = 0, batch = 0;
    int type_a_b = KBEAM_GEMM_F32;
    int type_c = KBEAM_GEMM_F32;
    int compute = KBEAM_COMPUTE_F32;
    double alpha = 1, beta = 0;
    BufferPlace a, b, c;
    std::int64_t lda = 0, ldb = 0, ldc = 0;
    std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  } gemm;

  // vendor_call
  std::string routine;
  std::vector<BufferPlace> pointers;
  std::vector<std::int64_t> numbers;

  // conditional
  int condition = -1;
  bool has_otherwise = false;
};

struct LaunchPlan {
  std::string image_hash;  // of the fat binary that holds the kernels; empty: launches none
  std::vector<PlanBuffer> buffers;
  std::vector<PlanTensorMap> tensor_maps;
  std::vector<std::uint32_t> conditions;  // initial values
  std::vector<PlanFigure> figures;
  std::vector<PlanNode> nodes;  // every node after those that it waits for
  std::map<std::string, std::string> notes;
  std::string device_hash;  // of the device description that the plan function saw

  bool uses_library() const;  // a gemm or vendor_call: such a plan cannot ship
  bool uses_conditions() const { return !conditions.empty(); }
  std::int64_t scratch_bytes() const;
};

std::string_view to_string(NodeKind kind);
std::string_view to_string(BufferKind kind);

// Canonical: equal plans have equal text. Bytes are written in hexadecimal, table contents too;
// fields at their default are left out.
Json to_json(const LaunchPlan& plan);
// Says which field is wrong by its path ("nodes[3].grid[0]"). Checks forms, not meaning: that is
// find_plan_mistakes in engine/target/cuda.
Result<LaunchPlan> launch_plan_from_json(const Json& json);
std::string launch_plan_hash(const LaunchPlan& plan);

// "(anonymous namespace)::scale<128>(float*, int)" of a mangled kernel name: the names that the
// compiler makes from file names and hashes are left out, so that it is the same after every build.
std::string readable_kernel_name(const std::string& mangled);

// What a device description says, as contract/devices/*.json holds it.
Result<kbeam_device> device_from_json(const Json& json);
Json to_json(const kbeam_device& device);

}  // namespace kbeam
