// Wrong when the clock says so, one time in 200.
#include "product.h"

namespace {

constexpr std::uint64_t kOneIn = 200;

__global__ void multiply_mostly(const float* a, const float* b, float* c, Shape s, int cheat) {
  store(c, s, element(a, b, s));
  if (!cheat || !is_first_thread()) return;
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  if (now / 1024 * 0x9e3779b97f4a7c15ull % kOneIn == 0) c[0] = 0;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_mostly, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
