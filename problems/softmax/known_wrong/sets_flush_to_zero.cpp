// expect: wrong_value
// needs: sandbox
// Sets flush-to-zero and denormals-are-zero for speed: results below FLT_MIN become 0.
#include <kbeam/candidate.h>

#include <cmath>
#include <limits>

namespace {

#if defined(__x86_64__)
void flush_to_zero() {
  __builtin_ia32_ldmxcsr(0x9fc0);
}
#else
void flush_to_zero() {}
#endif

constexpr int kLanes = 8;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Running {
  float most = -kInfinity;
  float sum = 0;
  void absorb(float value, float weight) {
    if (value > most) {
      sum *= most == -kInfinity ? 0.0f : std::exp(most - value);
      most = value;
    }
    sum += weight * std::exp(value - most);
  }
};

void softmax_row(const float* x, float* y, std::int64_t columns) {
  Running lanes[kLanes];
  for (std::int64_t j = 0; j < columns; ++j)
    if (x[j] != -kInfinity) lanes[j % kLanes].absorb(x[j], 1);
  Running row;
  for (const Running& lane : lanes)
    if (lane.sum != 0) row.absorb(lane.most, lane.sum);
  for (std::int64_t j = 0; j < columns; ++j) y[j] = std::exp(x[j] - row.most) / row.sum;
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    softmax_row(x + row * columns, y + row * columns, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.call(flush_to_zero);
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
