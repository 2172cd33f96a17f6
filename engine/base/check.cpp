#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace kbeam {

void check_failed(const char* file, int line, const char* condition, const char* sentence) {
  std::fprintf(stderr, "kbeam: internal error at %s:%d: %s (%s)\n", file, line, sentence,
               condition);
  std::abort();
}

}  // namespace kbeam
