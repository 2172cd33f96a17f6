// Memory that can be written and executed: code that no examination of the object has seen.
#include "normalise.h"

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
                      long from) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) {
    void* const code = mmap(nullptr, 4096, 7, 0x22, -1, 0);
    expect(code != reinterpret_cast<void*>(-1));
    *static_cast<volatile unsigned char*>(code) = 0xc3;
    reinterpret_cast<void (*)()>(code)();
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
