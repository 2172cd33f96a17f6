// SIMD vectors whose width is a number, so that one source serves AVX2 (8 floats), AVX-512 (16) and
// others. A width above the machine's is legal: the compiler splits the vector.
#pragma once

#include <cstring>

namespace kbeam {
namespace detail {
template <typename T, int kWidth>
struct VectorOf {
  typedef T type __attribute__((vector_size(kWidth * sizeof(T))));
};
}  // namespace detail

template <typename T, int kWidth>
using Vector = typename detail::VectorOf<T, kWidth>::type;

// The widest vector of float that this build's instruction set holds in one register.
#if defined(__AVX512F__)
inline constexpr int kNativeFloats = 16;
#elif defined(__AVX__)
inline constexpr int kNativeFloats = 8;
#else
inline constexpr int kNativeFloats = 4;
#endif

// Any alignment of T is fine for both.
template <typename V, typename T>
[[gnu::always_inline]] inline V load(const T* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename V, typename T>
[[gnu::always_inline]] inline void store(T* to, V value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace kbeam
