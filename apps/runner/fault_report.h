// Last words: signal handlers and a terminate handler that leave a hint in the control page before
// the process dies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "target/cpu/control_page.h"

namespace kbeam::runner {

struct WatchedRegion {
  control::Region region = control::Region::elsewhere;
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// Once, before the filter. `page` outlives the process.
void install_fault_handlers(control::Page* page);
// Every worker has a stack for handlers of its own, so that a stack overflow is reported too.
void install_signal_stack();
// Addresses that are named by region and offset.
void watch_region(const WatchedRegion& region);

}  // namespace kbeam::runner
