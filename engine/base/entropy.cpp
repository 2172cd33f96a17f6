#include "base/entropy.h"

#include <sys/random.h>

#include "base/check.h"
#include "base/hash.h"

namespace kbeam {

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  CHECK(getrandom(&bits, sizeof bits, 0) == sizeof bits, "the kernel gives random bytes");
  return bits;
}

std::string random_letters(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kRandomLetters[random_bits() % kRandomLetters.size()];
  return text;
}

std::uint64_t derive_seed(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
  const std::string hex = Hasher()
                              .field(static_cast<std::int64_t>(seed))
                              .field(purpose)
                              .field(static_cast<std::int64_t>(index))
                              .hex();
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

}  // namespace kbeam
