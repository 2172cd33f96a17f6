// What problem.cpp implements: inputs, the oracle and the cost of one problem. This code is
// trusted; it runs in the judge's process, never in the candidate's. Shapes, cases and families are
// declared in problem.toml.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace kbeam {

// One tensor of one case in memory. Dims and strides follow the axes in problem.toml; strides count
// elements.
struct TensorView {
  std::string_view name;
  kbeam_element_type type = KBEAM_F32;
  int rank = 0;
  std::int64_t dim[KBEAM_MAX_RANK] = {1, 1, 1, 1};
  std::int64_t stride[KBEAM_MAX_RANK] = {0, 0, 0, 0};
  std::int64_t elements = 0;  // dense: the product of the dims
  void* data = nullptr;

  float* f32() const { return static_cast<float*>(data); }
  std::int64_t bytes() const { return elements * (type == KBEAM_F64 || type == KBEAM_I64 ? 8 : 4); }
};

// The case that is worked on: axis values by name (derived axes included) and the input family.
class CaseView {
 public:
  virtual ~CaseView() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view family() const = 0;
  virtual std::int64_t axis(std::string_view name) const = 0;
};

// `quick` may use a randomised projection with `secret`, which the candidate cannot know; `full`
// looks at every element in double precision.
enum class CheckDepth { quick, full };

struct CheckRequest {
  CheckDepth depth = CheckDepth::full;
  std::string_view grade;    // one of problem.toml's grades
  std::uint64_t secret = 0;  // fresh for every check
};

enum class CheckFailure { wrong_value, not_finite };

// Where a check writes what it found. A figure above its limit, or a NaN, rejects the output:
// the test is `value <= limit`, never `value > limit`.
class CheckSink {
 public:
  virtual ~CheckSink() = default;
  // The worst `value` of the check named `name` over the whole output, in `unit`, and where it was
  // found
  // ("matrix 3, column 7"). Report every check once, passed or not.
  virtual void figure(std::string_view name, double value, double limit, std::string_view unit,
                      std::string_view where) = 0;
  // A failure that is no figure, such as a nonzero below the diagonal.
  virtual void reject(CheckFailure failure, std::string_view where, double found, double expected,
                      std::string_view sentence) = 0;
};

class ProblemCode {
 public:
  virtual ~ProblemCode() = default;

  // Fills `inputs` for this case: deterministic in `seed`.
  virtual void generate(const CaseView& the_case, std::uint64_t seed,
                        std::span<const TensorView> inputs) = 0;

  // Writes inputs that no earlier call has seen, from `base`, at about the cost of a copy: for
  // instance a row permutation, signs and a power-of-two scale drawn from `key`. Stays inside the
  // family.
  virtual void freshen(const CaseView& the_case, std::uint64_t key,
                       std::span<const TensorView> base, std::span<const TensorView> fresh) = 0;

  // Judges `outputs` against `inputs` alone, in double precision.
  virtual void check(const CaseView& the_case, const CheckRequest& request,
                     std::span<const TensorView> inputs, std::span<const TensorView> outputs,
                     CheckSink& sink) = 0;

  // Floating-point operations and compulsory bytes of one call.
  virtual double flops(const CaseView& the_case) = 0;
  virtual double bytes(const CaseView& the_case) = 0;
};

inline const TensorView& find_tensor(std::span<const TensorView> tensors, std::string_view name) {
  for (const TensorView& tensor : tensors)
    if (tensor.name == name) return tensor;
  static const TensorView none;
  return none;
}

inline constexpr int kProblemAbi = 1;

}  // namespace kbeam

// KBEAM_PROBLEM(BatchedQr) exports the class to the engine.
#define KBEAM_PROBLEM(Type)                                                                      \
  extern "C" __attribute__((visibility("default"))) int kbeam_problem_abi() {                    \
    return ::kbeam::kProblemAbi;                                                                 \
  }                                                                                              \
  extern "C" __attribute__((visibility("default"))) ::kbeam::ProblemCode* kbeam_make_problem() { \
    return new Type;                                                                             \
  }
