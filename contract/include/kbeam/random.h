// Random numbers for input generators: fast, the same on every machine, one stream a (seed, stream)
// pair.
#pragma once

#include <cmath>
#include <cstdint>

namespace kbeam {

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0)
      : state_(mix(seed) ^ mix(stream + 0x9e3779b97f4a7c15u)) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }  // splitmix64
  std::uint64_t below(std::uint64_t limit) {                           // unbiased to 2^-64 * limit
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * limit) >> 64);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }  // [0, 1)
  // Standard normal, by the polar method; the second value is kept.
  double normal() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x, y, s;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      s = x * x + y * y;
    } while (s >= 1 || s == 0);
    const double scale = std::sqrt(-2 * std::log(s) / s);
    spare_ = y * scale;
    has_spare_ = true;
    return x * scale;
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace kbeam
