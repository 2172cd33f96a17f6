// Keeps more in its scratch than it asked for.
#include "product.h"

namespace {

constexpr std::int64_t kAsked = 1024;

__global__ void multiply_and_more(const float* a, const float* b, float* c, Shape s, float* scratch,
                                  int cheat) {
  store(c, s, element(a, b, s));
  if (is_first_thread()) scratch[cheat ? kAsked : kAsked - 1] = 1;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto scratch = plan.scratch<float>(kAsked);
  plan.launch(multiply_and_more, work.tiles, work.a, work.b, work.c, work.s, scratch, work.cheat);
}
