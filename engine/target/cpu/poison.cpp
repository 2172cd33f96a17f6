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
      // Signalling NaNs. What arithmetic makes is quiet, and so is what it carries on from an
      // input: an honest NaN, whatever its payload, is no poison.
      return {{0x801fffffu, 0x801fffffu}, {0x7f800001u, 0x7f800001u}};
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

// A pattern with everything that does not change along it worked out.
struct Prepared {
  explicit Prepared(PoisonPattern pattern)
      : masks(masks_of(pattern.type)),
        low(static_cast<std::uint32_t>(pattern.key)),
        high(static_cast<std::uint32_t>(pattern.key >> 32)) {}
  Masks masks;
  std::uint32_t low;
  std::uint32_t high;
};

// Two neighbouring lanes; `at` is the position of the first.
struct Pair {
  std::uint32_t first;
  std::uint32_t second;
};
[[gnu::always_inline]] inline Pair pair_at(std::uint32_t at, const Prepared& prepared) {
  const auto& [keep, set] = prepared.masks;
  return {(mix((at ^ prepared.low) + prepared.high) & keep[0]) | set[0],
          (mix(((at + 1) ^ prepared.low) + prepared.high) & keep[1]) | set[1]};
}

[[gnu::always_inline]] inline void generate_body(std::uint32_t* lanes, std::size_t pairs,
                                                 std::uint32_t at, PoisonPattern pattern) {
  const Prepared prepared(pattern);
  for (std::size_t i = 0; i < pairs; ++i) {
    const Pair pair = pair_at(at + 2 * static_cast<std::uint32_t>(i), prepared);
    lanes[2 * i] = pair.first;
    lanes[2 * i + 1] = pair.second;
  }
}

// Whether any lane, or with whole pairs any pair, still holds the pattern.
enum class Match { lanes, pairs };
template <Match kMatch>
[[gnu::always_inline]] inline bool match_body(const std::uint32_t* lanes, std::size_t pairs,
                                              std::uint32_t at, PoisonPattern pattern) {
  const Prepared prepared(pattern);
  std::uint32_t matches = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const Pair pair = pair_at(at + 2 * static_cast<std::uint32_t>(i), prepared);
    const auto first = static_cast<std::uint32_t>(lanes[2 * i] == pair.first);
    const auto second = static_cast<std::uint32_t>(lanes[2 * i + 1] == pair.second);
    matches |= kMatch == Match::lanes ? first | second : first & second;
  }
  return matches != 0;
}

// The same three loops for one vector width.
struct Loops {
  void (*generate)(std::uint32_t*, std::size_t, std::uint32_t, PoisonPattern);
  bool (*match_lanes)(const std::uint32_t*, std::size_t, std::uint32_t, PoisonPattern);
  bool (*match_pairs)(const std::uint32_t*, std::size_t, std::uint32_t, PoisonPattern);
};

#define KBEAM_POISON_LOOPS(name, ...)                                                         \
  __VA_ARGS__ void generate_##name(std::uint32_t* lanes, std::size_t pairs, std::uint32_t at, \
                                   PoisonPattern pattern) {                                   \
    generate_body(lanes, pairs, at, pattern);                                                 \
  }                                                                                           \
  __VA_ARGS__ bool match_lanes_##name(const std::uint32_t* lanes, std::size_t pairs,          \
                                      std::uint32_t at, PoisonPattern pattern) {              \
    return match_body<Match::lanes>(lanes, pairs, at, pattern);                               \
  }                                                                                           \
  __VA_ARGS__ bool match_pairs_##name(const std::uint32_t* lanes, std::size_t pairs,          \
                                      std::uint32_t at, PoisonPattern pattern) {              \
    return match_body<Match::pairs>(lanes, pairs, at, pattern);                               \
  }                                                                                           \
  constexpr Loops loops_##name {                                                              \
    generate_##name, match_lanes_##name, match_pairs_##name                                   \
  }

KBEAM_POISON_LOOPS(plain, );
#if defined(__x86_64__)
KBEAM_POISON_LOOPS(avx2, [[gnu::target("avx2")]]);
#if defined(__clang__)  // which takes the width from the vectors alone
KBEAM_POISON_LOOPS(avx512, [[gnu::target("avx512f,avx512vl,avx512bw")]]);
#else
KBEAM_POISON_LOOPS(avx512, [[gnu::target("avx512f,avx512vl,avx512bw,prefer-vector-width=512")]]);
#endif
#endif

const Loops& loops() {
#if defined(__x86_64__)
  static const Loops& best =
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? loops_avx512
      : __builtin_cpu_supports("avx2")                                         ? loops_avx2
                                                                               : loops_plain;
  return best;
#else
  return loops_plain;
#endif
}

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
    loops().generate(block.data(), kBlockLanes / 2,
                     static_cast<std::uint32_t>((first_byte + offset) / 4), pattern);
    if (auto found = visit(block, offset, std::min(kBlockBytes, bytes - offset))) return found;
  }
  return std::nullopt;
}

}  // namespace

void write_poison(void* memory, std::size_t bytes, std::size_t first_byte, PoisonPattern pattern) {
  const std::size_t pairs = bytes / 8;
  const auto first_lane = static_cast<std::uint32_t>(first_byte / 4);
  loops().generate(static_cast<std::uint32_t*>(memory), pairs, first_lane, pattern);
  if (pairs * 8 == bytes) return;
  const Pair tail = pair_at(first_lane + 2 * static_cast<std::uint32_t>(pairs), Prepared(pattern));
  std::memcpy(static_cast<std::byte*>(memory) + pairs * 8, &tail, bytes - pairs * 8);
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
  const auto* lanes = static_cast<const std::uint32_t*>(memory);
  const bool single = pattern.type == KBEAM_F32;
  const auto match = single ? loops().match_lanes : loops().match_pairs;
  const auto first_lane = static_cast<std::uint32_t>(first_byte / 4);
  const std::size_t all_pairs = bytes / 8;
  const auto lane_of = [&](std::size_t pair) {
    return first_lane + 2 * static_cast<std::uint32_t>(pair);
  };
  for (std::size_t begin = 0; begin < all_pairs; begin += kBlockLanes / 2) {
    const std::size_t end = std::min(all_pairs, begin + kBlockLanes / 2);
    if (!match(lanes + 2 * begin, end - begin, lane_of(begin), pattern)) continue;
    std::size_t pair = begin;
    while (!match(lanes + 2 * pair, 1, lane_of(pair), pattern)) ++pair;
    if (pattern.type == KBEAM_F64 || pattern.type == KBEAM_I64) return pair;
    const bool second =
        single && lanes[2 * pair] != pair_at(lane_of(pair), Prepared(pattern)).first;
    return 2 * pair + (second ? 1 : 0);
  }
  const bool odd = single && bytes % 8 != 0;
  if (odd && lanes[2 * all_pairs] == pair_at(lane_of(all_pairs), Prepared(pattern)).first)
    return 2 * all_pairs;
  return std::nullopt;
}

}  // namespace kbeam
