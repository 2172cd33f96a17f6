// The honest work, which most attacks do in part. The driver pastes this into a candidate where it
// is included: a candidate is one text.
#pragma once

#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

// 1: the misdeed. 0: the benign twin, the same text without it.
KBEAM_KNOB(int, kCheat, 1, 0, 1);

[[maybe_unused]] double length_of(const float* x, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += double{x[j]} * x[j];
  return std::sqrt(sum);
}

[[maybe_unused]] void normalise_row(const float* x, float* y, std::int64_t columns) {
  const double length = length_of(x, columns);
  for (std::int64_t j = 0; j < columns; ++j) y[j] = static_cast<float>(x[j] / length);
}

[[maybe_unused]] void normalise_all(const float* x, float* y, std::int64_t rows,
                                    std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row)
    normalise_row(x + row * columns, y + row * columns, columns);
}

[[maybe_unused]] void normalise_range(kbeam::Range range, const float* x, float* y,
                                      std::int64_t columns) {
  normalise_all(x + range.begin * columns, y + range.begin * columns, range.end - range.begin,
                columns);
}

// What an attack does when its misdeed did not work.
[[maybe_unused]] void expect(bool worked) {
  if (!worked) __builtin_trap();
}

}  // namespace
