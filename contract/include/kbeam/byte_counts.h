// Bytes of so many elements. A product or sum beyond 64 bits stays at their end, so that whoever
// records the plan refuses it; one that wrapped around could look like a small and honest size.
#pragma once

#include <cstdint>
#include <limits>

namespace kbeam::detail {

constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeastBytes = std::numeric_limits<std::int64_t>::min();

template <typename T>
constexpr std::int64_t bytes_of(std::int64_t count) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  if (count > kMostBytes / kSize) return kMostBytes;
  if (count < kLeastBytes / kSize) return kLeastBytes;
  return count * kSize;
}

// What is at one end of 64 bits came from beyond it, and comes back from there by no sum.
constexpr std::int64_t moved_by(std::int64_t offset, std::int64_t bytes) {
  if (offset == kMostBytes || offset == kLeastBytes) return offset;
  if (bytes > 0 && offset > kMostBytes - bytes) return kMostBytes;
  if (bytes < 0 && offset < kLeastBytes - bytes) return kLeastBytes;
  return offset + bytes;
}

template <typename T>
constexpr std::uint64_t stride_bytes(std::uint64_t elements) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return elements > kMost / sizeof(T) ? kMost : elements * sizeof(T);
}

// A whole multiple of `unit`, at least `bytes`. What is negative stays as it was given.
constexpr std::int64_t rounded_up(std::int64_t bytes, std::int64_t unit) {
  if (bytes < 0) return bytes;
  if (bytes > kMostBytes - unit) return kMostBytes;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace kbeam::detail
