// Where the tensors of a case lie: slots, guard zones, poison and cache flushes, all in the judge's
// own mapping. Knows nothing of processes; the runner gets the extents and protects its mapping
// accordingly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "target/cpu/control_page.h"
#include "target/cpu/poison.h"
#include "target/cpu/runner.h"
#include "target/cpu/shared_region.h"

namespace kbeam {

// A byte of a region in words: "7 bytes past the end of output H (slot 1)".
struct Place {
  bool inside_tensor = false;
  kbeam_role role = KBEAM_INPUT;
  std::string text;
};

class CallMemory {
 public:
  static Result<CallMemory> make(std::int64_t input_bytes, std::int64_t output_bytes);

  // `key` decides order, offsets and the first poison.
  Result<void> lay_out(const std::vector<TensorShape>& tensors, int count, std::uint64_t key);

  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<control::Extent>& extents() const { return extents_; }
  const SharedRegion& inputs() const { return inputs_; }
  const SharedRegion& outputs() const { return outputs_; }

  void poison(int slot, std::uint64_t key);
  void flush(int slot) const;
  std::optional<RunnerFailure> inspect(int slot) const;
  std::optional<std::string> find_unwritten(int slot) const;

  // Names the tensor nearest to a byte of a region.
  Place find_place(control::Region region, std::int64_t offset) const;

 private:
  CallMemory(SharedRegion inputs, SharedRegion outputs)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  std::size_t index(int slot, std::size_t tensor) const {
    return static_cast<std::size_t>(slot) * tensors_.size() + tensor;
  }
  std::byte* base(const control::Extent& extent) const {
    return (extent.region == control::Region::inputs ? inputs_ : outputs_).data();
  }
  PoisonPattern pattern(std::size_t extent) const;
  std::optional<RunnerFailure> inspect_guards(int slot) const;
  void poison_extent(std::size_t extent) const;
  Result<void> place_extents(control::Region region, int count, std::uint64_t key);
  void make_slots(int count);

  SharedRegion inputs_;
  SharedRegion outputs_;
  std::vector<TensorShape> tensors_;
  std::vector<control::Extent> extents_;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> keys_;  // of the poison, one a slot
};

// False where the processor has no instruction for it.
bool can_flush();

}  // namespace kbeam
