// Finds the control page from inside a candidate, by looking through its own stack for a pointer to
// it.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstdint>

#include "target/cpu/control_page.h"

extern "C" long syscall(long number, ...) noexcept;
extern "C" int* __errno_location() noexcept;

namespace {

constexpr long kMaskSignals = 14, kProcessId = 39, kThreadId = 186, kSignalThread = 234;
constexpr long kStopSignal = 19;

// The kernel looks at the set before it refuses the first argument: it answers EFAULT or EINVAL and
// changes nothing.
bool can_be_read(const void* address) {
  constexpr int kNonsense = 99;
  int& number = *__errno_location();
  syscall(kMaskSignals, kNonsense, address, nullptr, 8);
  return number != 14;
}

[[maybe_unused]] kbeam::control::Page* find_page() {
  auto* const stack = static_cast<std::uintptr_t*>(__builtin_frame_address(0));
  for (int i = 0; i < 20000 && can_be_read(stack + i); ++i) {
    const std::uintptr_t value = stack[i];
    auto* const page = reinterpret_cast<kbeam::control::Page*>(value);
    if (value < 4096 || value % 4096 != 0 || !can_be_read(page)) continue;
    if (page->settings.workers >= 1 && page->settings.module_count == 1 &&
        page->settings.module_paths[0] == '/')
      return page;
  }
  return nullptr;
}

[[maybe_unused]] void stop_this_process() {
  syscall(kSignalThread, syscall(kProcessId), syscall(kThreadId), kStopSignal);
}

}  // namespace
