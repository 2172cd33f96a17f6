#include "target/cuda/call_findings.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/defence.h"

namespace kbeam {
namespace {

std::uint64_t element_bytes(const TensorShape& tensor) {
  return tensor.type == KBEAM_F64 || tensor.type == KBEAM_I64 ? 8 : 4;
}

std::string spell_element(const TensorShape& tensor, std::uint64_t element) {
  std::vector<std::size_t> slowest_first(tensor.dims.size());
  std::iota(slowest_first.begin(), slowest_first.end(), std::size_t{0});
  std::stable_sort(slowest_first.begin(), slowest_first.end(), [&](std::size_t a, std::size_t b) {
    return tensor.strides[a] > tensor.strides[b];
  });
  std::vector<std::uint64_t> at(tensor.dims.size());
  for (const std::size_t axis : slowest_first) {
    const auto stride = static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.strides[axis], 1));
    at[axis] =
        std::min(element / stride,
                 static_cast<std::uint64_t>(std::max<std::int64_t>(tensor.dims[axis] - 1, 0)));
    element -= at[axis] * stride;
  }
  std::string text = tensor.name + "[";
  for (std::size_t i = 0; i < at.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", at[i]);
  return text + "]";
}

}  // namespace

std::string spell_byte(const TensorShape& tensor, std::uint64_t byte) {
  return spell_element(tensor, byte / element_bytes(tensor));
}

std::string CallFindings::buffer_name(std::size_t index) const {
  const std::size_t tensors = case_.tensors.size();
  if (index < tensors) return case_.tensors[index].name;
  if (index - tensors < layout_.own_buffers().size()) {
    const OwnBuffer& own = layout_.own_buffers()[index - tensors];
    return case_.subject.buffers[static_cast<std::size_t>(own.buffer)].name;
  }
  return "a library's workspace";
}

CheckReport CallFindings::judge(const std::vector<SeatFinding>& found) const {
  CheckReport report;
  const auto fail = [&](Verdict verdict, std::string sentence) {
    report.verdict = verdict;
    report.sentence = std::move(sentence);
    return report;
  };
  if (found.size() != 2 * buffers_ + case_.tensors.size())
    return fail(Verdict::engine_failed, "the searches after the call are incomplete");
  for (std::size_t i = 0; i < buffers_ && defence_is_on(Defence::guard_zones); ++i) {
    if (const SeatFinding& front = found[2 * i]; front.count > 0)
      return fail(Verdict::wrote_outside,
                  fmt::format("{} bytes before the start of {} were overwritten", front.count,
                              buffer_name(i)));
    if (const SeatFinding& tail = found[2 * i + 1]; tail.count > 0)
      return fail(Verdict::wrote_outside,
                  fmt::format("{} bytes beyond the end of {} were overwritten", tail.count,
                              buffer_name(i)));
  }
  const auto* of_tensor = found.data() + 2 * buffers_;
  for (std::size_t i = 0; i < case_.tensors.size(); ++i)
    if (case_.tensors[i].role == KBEAM_INPUT && of_tensor[i].count > 0 &&
        defence_is_on(Defence::input_comparison))
      return fail(
          Verdict::mutated_input,
          fmt::format("{} bytes of the input {} were changed, the first in {}", of_tensor[i].count,
                      case_.tensors[i].name, spell_byte(case_.tensors[i], of_tensor[i].first)));
  for (std::size_t i = 0; i < case_.tensors.size(); ++i)
    if (case_.tensors[i].role == KBEAM_OUTPUT && of_tensor[i].count > 0 &&
        defence_is_on(Defence::unwritten_check))
      return fail(
          Verdict::wrong_value,
          fmt::format("{} of {} elements of {} were never written, the first is {}",
                      of_tensor[i].count, case_.tensors[i].elements(), case_.tensors[i].name,
                      spell_element(case_.tensors[i], of_tensor[i].first)));
  report.verdict = Verdict::accepted;
  return report;
}

}  // namespace kbeam
