// Patterns that no honest kernel writes: random NaNs for floating point, random bits for integers.
// A pattern is a function of key and position, so that it can be compared later without a copy.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace kbeam {

struct PoisonPattern {
  std::uint64_t key = 0;
  kbeam_element_type type = KBEAM_F32;
};

// `memory` is 64-byte aligned; `first_byte`, a multiple of 8, is its position in the pattern.
void write_poison(void* memory, std::size_t bytes, std::size_t first_byte, PoisonPattern pattern);

// The first byte at which `memory` differs from the pattern.
std::optional<std::size_t> find_damage(const void* memory, std::size_t bytes,
                                       std::size_t first_byte, PoisonPattern pattern);

// The first element that still holds the pattern. For int32_t two neighbours must hold it: one
// match in 2^32 is luck.
std::optional<std::size_t> find_poisoned_element(const void* memory, std::size_t bytes,
                                                 std::size_t first_byte, PoisonPattern pattern);

}  // namespace kbeam
