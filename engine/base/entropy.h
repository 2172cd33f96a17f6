// Randomness that a candidate cannot guess, from the kernel; and repeatable streams derived from a
// campaign seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kbeam {

std::uint64_t random_bits();            // getrandom(2)
std::string random_letters(int count);  // of kRandomLetters; for names of files and runs
// Without those that are taken for others.
inline constexpr std::string_view kRandomLetters = "abcdefghijkmnpqrstuvwxyz23456789";

// One stream a purpose: derive_seed(campaign, "screen n64", 3). SHA-256, so that streams do not
// overlap by design.
std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index = 0);

}  // namespace kbeam
