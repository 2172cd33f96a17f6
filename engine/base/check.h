// CHECK(condition, "sentence"): a programmer's mistake ends the process. User input never reaches
// it.
#pragma once

namespace kbeam {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* sentence);
}  // namespace kbeam

#define CHECK(condition, sentence)                     \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::kbeam::check_failed(__FILE__, __LINE__, #condition, sentence))
