#include "base/affinity.h"

#include <cstddef>

namespace kbeam {

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

Visit::Visit(int cpu) : known_(sched_getaffinity(0, sizeof before_, &before_) == 0) {
  pin_this_thread(cpu);
}

Visit::~Visit() {
  if (known_) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace kbeam
