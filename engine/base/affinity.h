// Which CPU a thread runs on.
#pragma once

namespace kbeam {

// Without effect where the system does not allow it.
void pin_this_thread(int cpu);

}  // namespace kbeam
