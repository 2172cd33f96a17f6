// Compile-time numbers that the tuner may change, and what must hold between them.
// Both are read from the source text as well: the tuner sees them without running any candidate
// code.
#pragma once

// KBEAM_KNOB(int, kPanel, 32, 16, 32, 64);
//   declares `constexpr int kPanel` with default 32 and the choices 16, 32, 64.
//   A build overrides it with -DKBEAM_SET_kPanel=~,64 (the comma moves the value into second
//   place).
#define KBEAM_KNOB(type, name, fallback, ...) \
  [[maybe_unused]] static constexpr type name = KBEAM_SECOND(KBEAM_SET_##name, fallback)

// KBEAM_REQUIRE(kPanel % kWidth == 0, "a panel holds whole vectors");
//   a constraint between knobs. The tuner skips configurations that break it; the compiler enforces
//   it.
#define KBEAM_REQUIRE(condition, sentence) static_assert(condition, sentence)

#define KBEAM_SECOND(...) KBEAM_SECOND_OF(__VA_ARGS__, )
#define KBEAM_SECOND_OF(first, second, ...) second
