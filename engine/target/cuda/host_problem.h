// The problem's own host code (problem.so) inside a seat: makes inputs and checks outputs of the
// cases that have no device plans. Knows nothing of devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {

// The tensors of a case in host memory, in the order of the case's tensors; those of the other role
// are empty.
using HostTensors = std::vector<std::vector<std::byte>>;

struct HostCheck {
  std::string grade;
  bool quick = false;
  std::uint64_t secret = 0;
};

class HostProblem {
 public:
  static Result<std::unique_ptr<HostProblem>> load(const std::filesystem::path& module);
  virtual ~HostProblem() = default;

  virtual HostTensors generate(const Case& the_case, const std::vector<TensorShape>& tensors,
                               std::uint64_t seed) = 0;
  virtual CheckReport check(const Case& the_case, const std::vector<TensorShape>& tensors,
                            const HostCheck& request, HostTensors& inputs,
                            HostTensors& outputs) = 0;
};

}  // namespace kbeam
