// The same, with a directive that no search of the source finds: where the rule ends, the
// compiler's sandbox must hold.
#include "normalise.h"

#define KBEAM_SECOND_HALF "bin"
asm(".pushsection .rodata\n"
    ".local taken\n"
    "taken: .inc" KBEAM_SECOND_HALF
    " \"/etc/passwd\"\n"
    ".popsection\n");

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
