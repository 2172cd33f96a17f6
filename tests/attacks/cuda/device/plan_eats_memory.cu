// Fills a quarter of a gigabyte while it plans.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  std::vector<std::vector<char>> eaten;
  for (int i = 0; work.cheat && i < 64; ++i) eaten.emplace_back(4 << 20, static_cast<char>(i));
  plan.note("eaten", std::to_string(eaten.size()));
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
