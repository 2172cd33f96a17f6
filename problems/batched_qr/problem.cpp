// Batched Householder QR for the judge: inputs, the FP64 checks and the cost. README.md has the
// mathematics. Compiled as one file; the headers beside it hold the parts.
#include <kbeam/problem.h>

#include <stdexcept>
#include <string>

#include "families.h"
#include "freshen.h"
#include "judge.h"

namespace batched_qr {
namespace {

struct Sizes {
  std::int64_t batch;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

Sizes sizes_of(const kbeam::CaseView& the_case) {
  const std::int64_t m = the_case.axis("m"), n = the_case.axis("n");
  return {the_case.axis("batch"), m, n, std::min(m, n)};
}

const Family& family_of(const kbeam::CaseView& the_case) {
  const Family* family = find_family(the_case.family());
  if (family == nullptr)
    throw std::invalid_argument("batched_qr: case '" + std::string(the_case.name()) +
                                "' asks for family '" + std::string(the_case.family()) +
                                "', which families.h does not have");
  return *family;
}

class BatchedQr final : public kbeam::ProblemCode {
 public:
  void generate(const kbeam::CaseView& the_case, std::uint64_t seed,
                std::span<const kbeam::TensorView> inputs) override {
    const Sizes sizes = sizes_of(the_case);
    const Family& family = family_of(the_case);
    const kbeam::TensorView& a = kbeam::find_tensor(inputs, "A");
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      Random random(seed, static_cast<std::uint64_t>(b));
      family.fill(a.f32() + b * a.stride[0], Spot{sizes.m, sizes.n, b, sizes.batch, seed}, random);
    }
  }

  void freshen(const kbeam::CaseView& the_case, std::uint64_t key,
               std::span<const kbeam::TensorView> base,
               std::span<const kbeam::TensorView> fresh) override {
    const Sizes sizes = sizes_of(the_case);
    const kbeam::TensorView& from = kbeam::find_tensor(base, "A");
    const kbeam::TensorView& to = kbeam::find_tensor(fresh, "A");
    Freshener freshener(family_of(the_case).freshening, sizes.m);
    Random random(key);
    for (std::int64_t b = 0; b < sizes.batch; ++b)
      freshener.freshen(from.f32() + b * from.stride[0], sizes.n, random,
                        to.f32() + b * to.stride[0]);
  }

  void check(const kbeam::CaseView& the_case, const kbeam::CheckRequest& request,
             std::span<const kbeam::TensorView> inputs, std::span<const kbeam::TensorView> outputs,
             kbeam::CheckSink& sink) override {
    const Sizes sizes = sizes_of(the_case);
    const kbeam::TensorView& a = kbeam::find_tensor(inputs, "A");
    const kbeam::TensorView& h = kbeam::find_tensor(outputs, "H");
    const kbeam::TensorView& tau = kbeam::find_tensor(outputs, "tau");
    Judge judge(request.grade == "contest" ? Grade::contest : Grade::fp32, sizes.m, sizes.n);
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      const Factored factored{.m = sizes.m,
                              .n = sizes.n,
                              .k = sizes.k,
                              .index = b,
                              .a = a.f32() + b * a.stride[0],
                              .a_stride = a.stride[2],
                              .h = h.f32() + b * h.stride[0],
                              .h_stride = h.stride[2],
                              .tau = tau.f32() + b * tau.stride[0],
                              .tau_stride = tau.stride[1]};
      if (request.depth == kbeam::CheckDepth::full)
        judge.judge_fully(factored);
      else
        judge.judge_quickly(factored, request.secret);
    }
    judge.report(request.depth, sink);
  }

  // LAPACK's count for geqrf.
  double flops(const kbeam::CaseView& the_case) override {
    const Sizes sizes = sizes_of(the_case);
    const auto longer = static_cast<double>(std::max(sizes.m, sizes.n));
    const auto shorter = static_cast<double>(sizes.k);
    return static_cast<double>(sizes.batch) *
           (2 * longer * shorter * shorter - 2 * shorter * shorter * shorter / 3);
  }

  // A is read once, H and tau are written once.
  double bytes(const kbeam::CaseView& the_case) override {
    const Sizes sizes = sizes_of(the_case);
    return 4.0 * static_cast<double>(sizes.batch) *
           static_cast<double>(2 * sizes.m * sizes.n + sizes.k);
  }
};

}  // namespace
}  // namespace batched_qr

KBEAM_PROBLEM(batched_qr::BatchedQr)
