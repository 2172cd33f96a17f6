// Turns what the searches after a call found into a verdict with a place: damage outside a buffer,
// an input that changed, an output that was never written. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/evaluation.h"
#include "target/cuda/kernels/seat_kernel_types.h"
#include "target/cuda/seat_layout.h"

namespace kbeam {

// "H[3, 0, 17]": the element of the dense tensor that holds this byte.
std::string spell_byte(const TensorShape& tensor, std::uint64_t byte);

class CallFindings {
 public:
  // `buffers`: of the candidate's memory: tensors, then the plan's own, then the libraries'.
  CallFindings(const SessionCase& the_case, const CaseLayout& layout, std::size_t buffers)
      : case_(the_case), layout_(layout), buffers_(buffers) {}

  // `found`: the zones before and after each buffer; then one for each tensor: differences from
  // the pristine input (bytes), or elements of the output that still hold the poison.
  CheckReport judge(const std::vector<SeatFinding>& found) const;

 private:
  std::string buffer_name(std::size_t index) const;

  const SessionCase& case_;
  const CaseLayout& layout_;
  std::size_t buffers_;
};

}  // namespace kbeam
