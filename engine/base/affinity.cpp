#include "base/affinity.h"

#include <sched.h>

#include <cstddef>

namespace kbeam {

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace kbeam
