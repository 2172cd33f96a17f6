// Waiting for an atomic to change: a short spin for steps that follow each other closely, then a
// futex sleep.
#pragma once

#include <atomic>
#include <cstdint>

namespace kbeam {

// About 20 us of spinning on current cores: longer than the gap between two balanced steps, shorter
// than a scheduler slice, so that more workers than cores still make progress.
inline constexpr int kSpinFirst = 500;
inline constexpr int kSleepAtOnce = 0;

inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

inline void wait_while_equal(const std::atomic<std::uint32_t>& number, std::uint32_t old,
                             int spins) {
  for (int spin = 0; spin < spins; ++spin) {
    if (number.load(std::memory_order_acquire) != old) return;
    pause_core();
  }
  number.wait(old, std::memory_order_acquire);
}

}  // namespace kbeam
