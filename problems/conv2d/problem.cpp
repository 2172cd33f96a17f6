// 2D convolution for the judge: inputs, fresh content and the cost. families.h has the kinds of
// input, judge.h the check, README.md the mathematics.
#include <kbeam/problem.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "families.h"
#include "judge.h"
#include "layer.h"

namespace conv2d {
namespace {

Layer layer_of(const kbeam::CaseView& the_case) {
  return {the_case.axis("batch"),        the_case.axis("channels"), the_case.axis("height"),
          the_case.axis("width"),        the_case.axis("filters"),  the_case.axis("kernel_height"),
          the_case.axis("kernel_width"), the_case.axis("stride"),   the_case.axis("padding"),
          the_case.axis("out_height"),   the_case.axis("out_width")};
}

const Family& family_of(const kbeam::CaseView& the_case) {
  const Family* family = find_family(the_case.family());
  if (family == nullptr)
    throw std::invalid_argument("conv2d: case '" + std::string(the_case.name()) +
                                "' asks for family '" + std::string(the_case.family()) +
                                "', which families.h does not have");
  return *family;
}

// How one plane of pixels is moved: rows and columns go round.
struct Turn {
  std::int64_t down, right;
};

void copy_plane(const float* from, const Layer& layer, Turn turn, float factor, float* to) {
  for (std::int64_t y = 0; y < layer.height; ++y) {
    const float* __restrict row = from + (y + turn.down) % layer.height * layer.width;
    float* __restrict out = to + y * layer.width;
    const std::int64_t rest = layer.width - turn.right;
    for (std::int64_t x = 0; x < rest; ++x) out[x] = row[x + turn.right] * factor;
    for (std::int64_t x = rest; x < layer.width; ++x) out[x] = row[x - rest] * factor;
  }
}

class Convolution final : public kbeam::ProblemCode {
 public:
  void generate(const kbeam::CaseView& the_case, std::uint64_t seed,
                std::span<const kbeam::TensorView> inputs) override {
    Random random(seed);
    family_of(the_case).fill(random, layer_of(the_case), kbeam::find_tensor(inputs, "X").f32(),
                             kbeam::find_tensor(inputs, "W").f32());
  }

  // Images in another order, each turned around and times a sign and a power of two; filters in
  // another order, each times a sign: exact, and what the family allows of these.
  void freshen(const kbeam::CaseView& the_case, std::uint64_t key,
               std::span<const kbeam::TensorView> base,
               std::span<const kbeam::TensorView> fresh) override {
    const Layer layer = layer_of(the_case);
    const Family& family = family_of(the_case);
    Random random(key);
    const float* const x = kbeam::find_tensor(base, "X").f32();
    const float* const w = kbeam::find_tensor(base, "W").f32();
    float* const new_x = kbeam::find_tensor(fresh, "X").f32();
    float* const new_w = kbeam::find_tensor(fresh, "W").f32();
    const std::int64_t plane = layer.height * layer.width;
    const std::int64_t first_image = draw(random, layer.batch);
    for (std::int64_t b = 0; b < layer.batch; ++b) {
      const Turn turn{draw(random, layer.height), draw(random, layer.width)};
      const float sign = family.may_sign ? draw_sign(random) : 1.0f;
      const int exponent = family.may_scale ? static_cast<int>(draw(random, 9)) - 4 : 0;
      const float factor = std::ldexp(sign, exponent);
      const float* const from = x + (b + first_image) % layer.batch * layer.image();
      for (std::int64_t c = 0; c < layer.channels; ++c)
        copy_plane(from + c * plane, layer, turn, factor, new_x + b * layer.image() + c * plane);
    }
    const std::int64_t first_filter = draw(random, layer.filters);
    for (std::int64_t f = 0; f < layer.filters; ++f) {
      const float sign = family.may_sign ? draw_sign(random) : 1.0f;
      const float* const from = w + (f + first_filter) % layer.filters * layer.taps();
      float* const to = new_w + f * layer.taps();
      for (std::int64_t t = 0; t < layer.taps(); ++t) to[t] = sign * from[t];
    }
  }

  void check(const kbeam::CaseView& the_case, const kbeam::CheckRequest&,
             std::span<const kbeam::TensorView> inputs, std::span<const kbeam::TensorView> outputs,
             kbeam::CheckSink& sink) override {
    const Layer layer = layer_of(the_case);
    Judge judge(layer, kbeam::find_tensor(inputs, "X").f32(), kbeam::find_tensor(inputs, "W").f32(),
                kbeam::find_tensor(outputs, "Y").f32());
    judge.judge(family_of(the_case).is_exact);
    judge.report(sink);
  }

  // Taps on the padding counted, as everybody counts them.
  double flops(const kbeam::CaseView& the_case) override {
    const Layer l = layer_of(the_case);
    return 2 * static_cast<double>(l.batch * l.filters) *
           static_cast<double>(l.out_image() * l.taps());
  }

  // X and W are read once, Y is written once.
  double bytes(const kbeam::CaseView& the_case) override {
    const Layer l = layer_of(the_case);
    return 4 * static_cast<double>(l.inputs() + l.weights() + l.batch * l.filters * l.out_image());
  }
};

}  // namespace
}  // namespace conv2d

KBEAM_PROBLEM(conv2d::Convolution)
