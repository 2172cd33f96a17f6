// Memory from the kernel, moved and given back; nothing executable.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
                      long from) noexcept;
extern "C" void* mremap(void* at, std::size_t bytes, std::size_t wanted, int flags, ...) noexcept;
extern "C" int munmap(void* at, std::size_t bytes) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  void* memory = mmap(nullptr, 4096, 3, 0x22, -1, 0);
  memory = mremap(memory, 4096, 1 << 20, 1);
  if (memory == reinterpret_cast<void*>(-1)) std::abort();
  auto* const staging = static_cast<double*>(memory);
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      staging[j] = x[row * columns + j];
      sum += staging[j] * staging[j];
    }
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(staging[j] / length);
  }
  munmap(memory, 1 << 20);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
