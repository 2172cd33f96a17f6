// Which CPU a thread runs on.
#pragma once

#include <sched.h>

namespace kbeam {

// Without effect where the system does not allow it.
void pin_this_thread(int cpu);

// This thread runs on `cpu` while it lives, and where it was allowed to before afterwards.
class Visit {
 public:
  explicit Visit(int cpu);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  cpu_set_t before_;
  bool known_;
};

}  // namespace kbeam
