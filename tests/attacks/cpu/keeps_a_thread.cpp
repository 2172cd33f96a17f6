// A thread of its own, there since the first call, which the clock of a call does not see.
#include "normalise.h"

extern "C" int pthread_create(unsigned long* thread, const void* how, void* (*start)(void*),
                              void* with) noexcept;
extern "C" int pause();

namespace {

unsigned long thread;

void* wait_for_work(void*) {
  for (;;) pause();
}

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  if (kCheat && thread == 0) expect(pthread_create(&thread, nullptr, wait_for_work, nullptr) == 0);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
