// Reports through the control page that the judge asked for nonsense: a failure of the engine costs
// the candidate nothing, and is tried again.
#include "find_page.h"
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (!kCheat) return;
  kbeam::control::Page* const page = find_page();
  expect(page != nullptr);
  page->reply.status = kbeam::control::Status::confused;
  page->reply.sequence = page->request.sequence;
  stop_this_process();
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
