// Layout of slots and what is done to them between calls.
#include "target/cpu/call_memory.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <fmt/format.h>
#include <kbeam/random.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/defence.h"

namespace kbeam {
namespace {

using control::Extent;
using control::Region;

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::size_t kGuard = 4096;
// What guard zones and gaps can add to one tensor: two guards, rounding, the random offset and a
// gap.
constexpr std::size_t kMostOverhead = 8 * kPage;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t capacity(std::int64_t bytes) {
  return round_up(static_cast<std::size_t>(std::max<std::int64_t>(0, bytes)) +
                      control::kMaxExtents * kMostOverhead,
                  kPage);
}

Region region_of(kbeam_role role) {
  return role == KBEAM_OUTPUT ? Region::outputs : Region::inputs;
}

#if defined(__x86_64__)
enum class FlushInstruction { clflush, clflushopt };

FlushInstruction choose_flush() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool optimised = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 23)) != 0;
  return optimised ? FlushInstruction::clflushopt : FlushInstruction::clflush;
}

[[gnu::target("clflushopt")]] void flush_optimised(std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) _mm_clflushopt(from + at);
}

void flush_lines(std::byte* from, std::size_t bytes) {
  static const FlushInstruction instruction = choose_flush();
  if (instruction == FlushInstruction::clflushopt) return flush_optimised(from, bytes);
  for (std::size_t at = 0; at < bytes; at += kLine) _mm_clflush(from + at);
}
void flush_fence() {
  _mm_mfence();
}
#else
void flush_lines(std::byte*, std::size_t) {}
void flush_fence() {}
#endif

}  // namespace

bool can_flush() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

Result<CallMemory> CallMemory::make(std::int64_t input_bytes, std::int64_t output_bytes) {
  ASSIGN_OR_RETURN(auto inputs, SharedRegion::make("kbeam-inputs", capacity(input_bytes),
                                                   RegionAccess::runner_reads));
  ASSIGN_OR_RETURN(auto outputs, SharedRegion::make("kbeam-outputs", capacity(output_bytes),
                                                    RegionAccess::runner_writes));
  return CallMemory(std::move(inputs), std::move(outputs));
}

Result<void> CallMemory::lay_out(const std::vector<TensorShape>& tensors, int count,
                                 std::uint64_t key) {
  const std::string attempted =
      fmt::format("lay {} tensors out in {} slots", tensors.size(), count);
  if (tensors.empty() || tensors.size() > control::kMaxTensors || count < 1 ||
      tensors.size() * static_cast<std::size_t>(count) > control::kMaxExtents)
    return Error{ErrorCode::bad_input, attempted,
                 "there must be 1 to 16 tensors and at most 1024 with all slots",
                 "ask for fewer slots"};
  for (const TensorShape& tensor : tensors)
    if (tensor.dims.size() > KBEAM_MAX_RANK || tensor.strides.size() != tensor.dims.size() ||
        tensor.bytes() < 0)
      return Error{ErrorCode::bad_input, attempted, "tensor " + tensor.name + " has a bad shape",
                   "give at most four axes, with a stride each"};
  tensors_ = tensors;
  extents_.assign(tensors.size() * static_cast<std::size_t>(count), Extent{});
  slots_.clear();
  keys_.assign(static_cast<std::size_t>(count), key);
  RETURN_IF_ERROR(place_extents(Region::inputs, count, key));
  RETURN_IF_ERROR(place_extents(Region::outputs, count, key + 1));
  make_slots(count);
  for (std::size_t extent = 0; extent < extents_.size(); ++extent) poison_extent(extent);
  return {};
}

// Random order, random gaps and random 64-byte offsets: neither addresses nor their low bits
// repeat.
Result<void> CallMemory::place_extents(Region region, int count, std::uint64_t key) {
  Random random(key, 7);
  std::vector<std::size_t> order;
  for (int slot = 0; slot < count; ++slot)
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor)
      if (region_of(tensors_[tensor].role) == region) order.push_back(index(slot, tensor));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);

  const std::size_t room = (region == Region::inputs ? inputs_ : outputs_).bytes();
  std::size_t at = 0;
  for (const std::size_t which : order) {
    const auto bytes = static_cast<std::size_t>(tensors_[which % tensors_.size()].bytes());
    at += kPage * (1 + random.below(3));
    const std::size_t tensor_begin = at + kGuard + kLine * random.below(kPage / kLine);
    const std::size_t end = round_up(tensor_begin + bytes + kGuard, kPage);
    extents_[which] = {region, at, end - at, tensor_begin};
    at = end;
  }
  if (at + kPage > room)
    return Error{ErrorCode::bad_input, "lay tensors out in the memory of a runner",
                 fmt::format("the {} need {} bytes and the runner was started with {}",
                             region == Region::inputs ? "inputs" : "outputs", at + kPage, room),
                 "start the runner with the capacity of the largest case, all slots together"};
  return {};
}

void CallMemory::make_slots(int count) {
  for (int number = 0; number < count; ++number) {
    Slot slot;
    for (std::size_t which = 0; which < tensors_.size(); ++which) {
      const TensorShape& shape = tensors_[which];
      const Extent& extent = extents_[index(number, which)];
      TensorView view;
      view.name = shape.name;
      view.type = shape.type;
      view.rank = static_cast<int>(shape.dims.size());
      std::copy(shape.dims.begin(), shape.dims.end(), view.dim);
      std::copy(shape.strides.begin(), shape.strides.end(), view.stride);
      view.elements = shape.elements();
      view.data = base(extent) + extent.tensor_begin;
      (shape.role == KBEAM_OUTPUT ? slot.outputs : slot.inputs).push_back(view);
    }
    slots_.push_back(std::move(slot));
  }
}

PoisonPattern CallMemory::pattern(std::size_t extent) const {
  // Every extent has a key of its own, so that a shifted or swapped output is no valid guard.
  return {keys_[extent / tensors_.size()] + 0x9e3779b97f4a7c15u * (extent + 1),
          tensors_[extent % tensors_.size()].type};
}

void CallMemory::poison_extent(std::size_t which) const {
  const Extent& extent = extents_[which];
  write_poison(base(extent) + extent.begin, extent.bytes, 0, pattern(which));
}

void CallMemory::poison(int slot, std::uint64_t key) {
  keys_[static_cast<std::size_t>(slot)] = key;
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor)
    if (tensors_[tensor].role == KBEAM_OUTPUT) poison_extent(index(slot, tensor));
  if (!defence_is_on(Defence::poison))
    for (const TensorView& output : slots_[static_cast<std::size_t>(slot)].outputs)
      std::memset(output.data, 0, static_cast<std::size_t>(output.bytes()));
}

void CallMemory::flush(int slot) const {
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    const Extent& extent = extents_[index(slot, tensor)];
    flush_lines(base(extent) + extent.begin, extent.bytes);
  }
  flush_fence();
}

std::optional<RunnerFailure> CallMemory::inspect(int slot) const {
  if (!defence_is_on(Defence::guard_zones)) return std::nullopt;
  if (auto failure = inspect_guards(slot)) return failure;
  // A write that went far reaches the guards of another slot.
  for (std::size_t other = 0; other < slots_.size(); ++other)
    if (auto failure = inspect_guards(static_cast<int>(other))) return failure;
  return std::nullopt;
}

std::optional<RunnerFailure> CallMemory::inspect_guards(int slot) const {
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    if (tensors_[tensor].role != KBEAM_OUTPUT) continue;
    const std::size_t which = index(slot, tensor);
    const Extent& extent = extents_[which];
    const std::size_t tensor_end =
        extent.tensor_begin + static_cast<std::size_t>(tensors_[tensor].bytes());
    const std::pair<std::size_t, std::size_t> zones[] = {{extent.begin, extent.tensor_begin},
                                                         {tensor_end, extent.begin + extent.bytes}};
    for (const auto& [begin, end] : zones) {
      const auto damage =
          find_damage(base(extent) + begin, end - begin, begin - extent.begin, pattern(which));
      if (!damage) continue;
      const Place place = find_place(extent.region, static_cast<std::int64_t>(begin + *damage));
      return RunnerFailure{Verdict::wrote_outside, "the candidate wrote " + place.text};
    }
  }
  return std::nullopt;
}

std::optional<std::string> CallMemory::find_unwritten(int slot) const {
  for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
    if (tensors_[tensor].role != KBEAM_OUTPUT) continue;
    const std::size_t which = index(slot, tensor);
    const Extent& extent = extents_[which];
    const auto element = find_poisoned_element(base(extent) + extent.tensor_begin,
                                               static_cast<std::size_t>(tensors_[tensor].bytes()),
                                               extent.tensor_begin - extent.begin, pattern(which));
    if (element)
      return fmt::format("{} element {} was never written", tensors_[tensor].name, *element);
  }
  return std::nullopt;
}

Place CallMemory::find_place(Region region, std::int64_t offset) const {
  std::int64_t nearest = INT64_MAX;
  Place place{.text = "far from every tensor"};
  for (std::size_t which = 0; which < extents_.size(); ++which) {
    const Extent& extent = extents_[which];
    if (extent.region != region) continue;
    const TensorShape& shape = tensors_[which % tensors_.size()];
    const auto begin = static_cast<std::int64_t>(extent.tensor_begin);
    const std::int64_t end = begin + shape.bytes();
    const std::int64_t distance = offset < begin ? begin - offset
                                  : offset < end ? 0
                                                 : offset - end + 1;
    if (distance >= nearest) continue;
    nearest = distance;
    const std::string name =
        fmt::format("{} {} (slot {})", shape.role == KBEAM_OUTPUT ? "output" : "input", shape.name,
                    which / tensors_.size());
    place.inside_tensor = distance == 0;
    place.role = shape.role;
    if (distance == 0)
      place.text = fmt::format("to byte {} of {}", offset - begin, name);
    else if (offset < begin)
      place.text = fmt::format("{} bytes before the start of {}", distance, name);
    else
      place.text = fmt::format("at byte {} past the end of {}", offset - end, name);
  }
  return place;
}

}  // namespace kbeam
