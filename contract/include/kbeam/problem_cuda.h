// What problem.cu implements: how the inputs of a large case are made on the GPU, and how its
// outputs are judged there, in FP64. Trusted code, written as plans like a candidate's; it never
// runs while a candidate can.
#pragma once

#include <kbeam/knob.h>
#include <kbeam/launch_plan.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kbeam {

// What changes from call to call, in device memory: the same graph generates and checks every call.
struct Control {
  std::uint64_t seed;    // of the inputs: the same seed brings the same inputs back
  std::uint64_t secret;  // of a check: fresh for every check
};

// One figure in device memory: the worst value so far and where. Zero before the check.
using FigureCell = unsigned long long;

#ifdef __CUDACC__
// Keeps the larger value (FP32 of it, rounded up by at most one unit), NaN above all; `index` below
// 2^32 says where.
static __device__ __forceinline__ void raise_figure(FigureCell* cell, double value,
                                                    std::uint64_t index) {
  const float rounded = __double2float_ru(value < 0 ? -value : value);
  const unsigned bits = value != value ? 0x7fffffffu : __float_as_uint(rounded);
  const FigureCell packed =
      (static_cast<FigureCell>(bits) << 32) | static_cast<std::uint32_t>(index);
  if (packed > *const_cast<volatile FigureCell*>(cell)) atomicMax(cell, packed);
}
#endif

struct FigureSpec {
  std::string name;
  std::string unit;
  double limit = 0;
  // How an index is spelled, last one fastest: {{"matrix", batch}, {"column", n}}.
  std::vector<std::pair<std::string, std::int64_t>> where;
  bool not_finite = false;
};

class ProblemArgs : public Args {
 public:
  using Args::Args;
  // "family", "grade", "depth".
  std::string text(const char* key) const { return host()->text(host()->self, key); }
};

// In generate plans every input tensor is an output of the plan: args.output<float>("A"). In check
// plans every tensor is an input: args.input<float>("H").
class ProblemPlan : public Plan {
 public:
  using Arguments = ProblemArgs;
  using Plan::Plan;
  // The Control of the call in hand.
  DevicePointer<const Control> control(const Args& args) const {
    kbeam_buffer found{};
    (void)args;
    return {
        {host()->find_buffer(host()->self, "kbeam.control", KBEAM_INPUT, KBEAM_I64, &found), 0}};
  }
  // Check plans: a figure that kernels raise. Report every check once, passed or not.
  DevicePointer<FigureCell> figure(const FigureSpec& spec) {
    kbeam_figure request{};
    request.name = spec.name.c_str();
    request.unit = spec.unit.c_str();
    request.limit = spec.limit;
    request.not_finite = spec.not_finite;
    for (const auto& [name, radix] : spec.where) {
      if (request.radix_count == 3) break;
      request.radix_name[request.radix_count] = name.c_str();
      request.radix[request.radix_count++] = radix;
    }
    kbeam_pointer cell{};
    host()->figure(host()->self, &request, &cell);
    return {cell};
  }
};

}  // namespace kbeam

// Fills the inputs of a case from Control::seed; args.text("family") names the family.
#define KBEAM_GENERATE(plan, args) \
  KBEAM_CUDA_PLAN_NAMED(kbeam_generate_plan, ::kbeam::ProblemPlan, plan, args)
// Judges the outputs against the inputs alone; args.text("grade"), args.text("depth") ("quick",
// "full").
#define KBEAM_CHECK(plan, args) \
  KBEAM_CUDA_PLAN_NAMED(kbeam_check_plan, ::kbeam::ProblemPlan, plan, args)
