// The pattern generator, compiled for several vector widths and chosen at run time.
#include "target/cpu/poison.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kbeam {
namespace {

// How a pair of 32-bit lanes is turned into a NaN: (random & keep) | set.
struct Masks {
  std::uint32_t keep[2];
  std::uint32_t set[2];
};

constexpr Masks masks_of(kbeam_element_type type) {
  switch (type) {
    case KBEAM_F32:
      return {{0x803fffffu, 0x803fffffu}, {0x7fc00000u, 0x7fc00000u}};
    case KBEAM_F64:
      return {{0xffffffffu, 0x8007ffffu}, {0u, 0x7ff80000u}};
    case KBEAM_I32:
    case KBEAM_I64:
      break;
  }
  return {{0xffffffffu, 0xffffffffu}, {0u, 0u}};
}

[[gnu::always_inline]] inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

[[gnu::always_inline]] inline void generate_body(std::uint32_t* lanes, std::size_t count,
                                                 std::uint32_t first, PoisonPattern pattern) {
  const Masks masks = masks_of(pattern.type);
  const auto low = static_cast<std::uint32_t>(pattern.key);
  const auto high = static_cast<std::uint32_t>(pattern.key >> 32);
  for (std::size_t pair = 0; pair < count / 2; ++pair) {
    const std::uint32_t at = first + 2 * static_cast<std::uint32_t>(pair);
    lanes[2 * pair] = (mix((at ^ low) + high) & masks.keep[0]) | masks.set[0];
    lanes[2 * pair + 1] = (mix(((at + 1) ^ low) + high) & masks.keep[1]) | masks.set[1];
  }
}

using Generator = void (*)(std::uint32_t*, std::size_t, std::uint32_t, PoisonPattern);

void generate_plain(std::uint32_t* lanes, std::size_t count, std::uint32_t first,
                    PoisonPattern pattern) {
  generate_body(lanes, count, first, pattern);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void generate_avx2(std::uint32_t* lanes, std::size_t count,
                                           std::uint32_t first, PoisonPattern pattern) {
  generate_body(lanes, count, first, pattern);
}
[[gnu::target("avx512f,avx512vl,prefer-vector-width=512")]] void generate_avx512(
    std::uint32_t* lanes, std::size_t count, std::uint32_t first, PoisonPattern pattern) {
  generate_body(lanes, count, first, pattern);
}
#endif

Generator choose_generator() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return generate_avx512;
  if (__builtin_cpu_supports("avx2")) return generate_avx2;
#endif
  return generate_plain;
}

const Generator generate = choose_generator();

constexpr std::size_t kBlockLanes = 1024;
constexpr std::size_t kBlockBytes = kBlockLanes * 4;
using Block = std::array<std::uint32_t, kBlockLanes>;

// Calls visit(block, offset, bytes) over [0, bytes) with the pattern of each block until it returns
// a value.
template <typename Visit>
std::optional<std::size_t> find_in_blocks(std::size_t bytes, std::size_t first_byte,
                                          PoisonPattern pattern, const Visit& visit) {
  alignas(64) Block block;
  for (std::size_t offset = 0; offset < bytes; offset += kBlockBytes) {
    generate(block.data(), kBlockLanes, static_cast<std::uint32_t>((first_byte + offset) / 4),
             pattern);
    if (auto found = visit(block, offset, std::min(kBlockBytes, bytes - offset))) return found;
  }
  return std::nullopt;
}

template <typename Element>
std::optional<std::size_t> find_equal(const std::byte* memory, const Block& block,
                                      std::size_t bytes) {
  const std::size_t count = bytes / sizeof(Element);
  std::array<Element, kBlockBytes / sizeof(Element)> found, expected;
  std::memcpy(found.data(), memory, bytes);
  std::memcpy(expected.data(), block.data(), bytes);
  unsigned equal = 0;
  for (std::size_t i = 0; i < count; ++i) equal |= static_cast<unsigned>(found[i] == expected[i]);
  if (equal == 0) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i)
    if (found[i] == expected[i]) return i;
  return std::nullopt;
}

}  // namespace

void write_poison(void* memory, std::size_t bytes, std::size_t first_byte, PoisonPattern pattern) {
  const std::size_t even_lanes = bytes / 8 * 2;
  const auto first_lane = static_cast<std::uint32_t>(first_byte / 4);
  generate(static_cast<std::uint32_t*>(memory), even_lanes, first_lane, pattern);
  if (even_lanes * 4 == bytes) return;
  std::uint32_t tail[2];
  generate(tail, 2, first_lane + static_cast<std::uint32_t>(even_lanes), pattern);
  std::memcpy(static_cast<std::byte*>(memory) + even_lanes * 4, tail, bytes - even_lanes * 4);
}

std::optional<std::size_t> find_damage(const void* memory, std::size_t bytes,
                                       std::size_t first_byte, PoisonPattern pattern) {
  const auto* from = static_cast<const std::byte*>(memory);
  return find_in_blocks(bytes, first_byte, pattern,
                        [from](const Block& block, std::size_t offset,
                               std::size_t length) -> std::optional<std::size_t> {
                          const auto* expected = reinterpret_cast<const std::byte*>(block.data());
                          if (std::memcmp(from + offset, expected, length) == 0)
                            return std::nullopt;
                          const auto* at =
                              std::mismatch(expected, expected + length, from + offset).first;
                          return offset + static_cast<std::size_t>(at - expected);
                        });
}

std::optional<std::size_t> find_poisoned_element(const void* memory, std::size_t bytes,
                                                 std::size_t first_byte, PoisonPattern pattern) {
  const auto* from = static_cast<const std::byte*>(memory);
  const bool wide = pattern.type == KBEAM_F64 || pattern.type == KBEAM_I64;
  const bool pairs = pattern.type == KBEAM_I32;
  const auto found = find_in_blocks(
      bytes, first_byte, pattern,
      [&](const Block& block, std::size_t offset,
          std::size_t length) -> std::optional<std::size_t> {
        const auto at = wide || pairs ? find_equal<std::uint64_t>(from + offset, block, length)
                                      : find_equal<std::uint32_t>(from + offset, block, length);
        if (!at) return std::nullopt;
        return offset / (wide || pairs ? 8 : 4) + *at;
      });
  if (found && pairs) return *found * 2;
  return found;
}

}  // namespace kbeam
