// Matrix product for the judge: inputs, fresh content and the cost. families.h has the kinds of
// input, judge.h the checks, README.md the mathematics.
#include <kbeam/problem.h>

#include <stdexcept>
#include <string>

#include "families.h"
#include "judge.h"

namespace matmul {
namespace {

struct Sizes {
  std::int64_t batch, m, n, k;
};

Sizes sizes_of(const kbeam::CaseView& the_case) {
  return {the_case.axis("batch"), the_case.axis("m"), the_case.axis("n"), the_case.axis("k")};
}

const Family& family_of(const kbeam::CaseView& the_case) {
  const Family* family = find_family(the_case.family());
  if (family == nullptr)
    throw std::invalid_argument("matmul: case '" + std::string(the_case.name()) +
                                "' asks for family '" + std::string(the_case.family()) +
                                "', which families.h does not have");
  return *family;
}

std::int64_t coprime_step(Random& random, std::int64_t count) {
  std::int64_t step = 1 + draw(random, count);
  while (std::gcd(step, count) != 1) ++step;
  return step;
}

class MatrixProduct final : public kbeam::ProblemCode {
 public:
  void generate(const kbeam::CaseView& the_case, std::uint64_t seed,
                std::span<const kbeam::TensorView> inputs) override {
    const Sizes s = sizes_of(the_case);
    const Family& family = family_of(the_case);
    float* const a = kbeam::find_tensor(inputs, "A").f32();
    float* const b = kbeam::find_tensor(inputs, "B").f32();
    for (std::int64_t index = 0; index < s.batch; ++index) {
      Random random(seed, static_cast<std::uint64_t>(index));
      family.fill(random, Pair{s.m, s.n, s.k, index, a + index * s.m * s.k, b + index * s.k * s.n});
    }
  }

  // Rows of A in another order, columns of B rotated, column l of A and row l of B with the same
  // random sign, all of A times a power of two: exact, and what the family allows of these.
  void freshen(const kbeam::CaseView& the_case, std::uint64_t key,
               std::span<const kbeam::TensorView> base,
               std::span<const kbeam::TensorView> fresh) override {
    const Sizes s = sizes_of(the_case);
    const Family& family = family_of(the_case);
    const float* const a = kbeam::find_tensor(base, "A").f32();
    const float* const b = kbeam::find_tensor(base, "B").f32();
    float* const new_a = kbeam::find_tensor(fresh, "A").f32();
    float* const new_b = kbeam::find_tensor(fresh, "B").f32();
    Random random(key);
    std::vector<float> signs(static_cast<std::size_t>(s.k));
    std::vector<float> factors(signs.size());
    for (std::int64_t index = 0; index < s.batch; ++index) {
      const float scale =
          family.may_scale ? std::ldexp(1.0f, static_cast<int>(draw(random, 9)) - 4) : 1.0f;
      for (std::int64_t l = 0; l < s.k; ++l) {
        signs[l] = family.may_sign ? draw_sign(random) : 1.0f;
        factors[l] = signs[l] * scale;
      }
      copy_rows(random, family, s, factors, a + index * s.m * s.k, new_a + index * s.m * s.k);
      const std::int64_t turn = family.may_move ? draw(random, s.n) : 0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        const float* const from = b + (index * s.k + l) * s.n;
        float* const to = new_b + (index * s.k + l) * s.n;
        copy_scaled(from + turn, s.n - turn, signs[l], to);
        copy_scaled(from, turn, signs[l], to + (s.n - turn));
      }
    }
  }

  void check(const kbeam::CaseView& the_case, const kbeam::CheckRequest& request,
             std::span<const kbeam::TensorView> inputs, std::span<const kbeam::TensorView> outputs,
             kbeam::CheckSink& sink) override {
    const Sizes s = sizes_of(the_case);
    const float* const a = kbeam::find_tensor(inputs, "A").f32();
    const float* const b = kbeam::find_tensor(inputs, "B").f32();
    const float* const c = kbeam::find_tensor(outputs, "C").f32();
    Judge judge(s.k);
    for (std::int64_t index = 0; index < s.batch; ++index) {
      const Product product{.m = s.m,
                            .n = s.n,
                            .k = s.k,
                            .index = index,
                            .a = a + index * s.m * s.k,
                            .b = b + index * s.k * s.n,
                            .c = c + index * s.m * s.n};
      if (request.depth == kbeam::CheckDepth::full)
        judge.judge_fully(product);
      else
        judge.judge_quickly(product, request.secret);
    }
    judge.report(request.depth, sink);
  }

  double flops(const kbeam::CaseView& the_case) override {
    const Sizes s = sizes_of(the_case);
    return 2 * static_cast<double>(s.batch * s.m) * static_cast<double>(s.n * s.k);
  }

  // A and B are read once, C is written once.
  double bytes(const kbeam::CaseView& the_case) override {
    const Sizes s = sizes_of(the_case);
    return 4 * static_cast<double>(s.batch) *
           static_cast<double>(s.m * s.k + s.k * s.n + s.m * s.n);
  }

 private:
  static void copy_scaled(const float* __restrict from, std::int64_t count, float factor,
                          float* __restrict to) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] * factor;
  }

  static void copy_rows(Random& random, const Family& family, const Sizes& s,
                        const std::vector<float>& factors, const float* a, float* new_a) {
    const std::int64_t step = family.may_move ? coprime_step(random, s.m) : 1;
    std::int64_t source = family.may_move ? draw(random, s.m) : 0;
    for (std::int64_t i = 0; i < s.m; ++i) {
      const float* __restrict from = a + source * s.k;
      float* __restrict to = new_a + i * s.k;
      for (std::int64_t l = 0; l < s.k; ++l) to[l] = from[l] * factors[l];
      source = (source + step) % s.m;
    }
  }
};

}  // namespace
}  // namespace matmul

KBEAM_PROBLEM(matmul::MatrixProduct)
