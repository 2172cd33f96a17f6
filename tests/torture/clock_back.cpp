// Preloaded into kbeam by clock_back.sh: a clock of the day that is behind by the seconds that a
// file says. The monotonic clock is left alone, as when somebody sets the time.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace {

long seconds_back() {
  const char* const name = getenv("KBEAM_TEST_SECONDS_BACK");
  FILE* const file = name == nullptr ? nullptr : fopen(name, "r");
  if (file == nullptr) return 0;
  long seconds = 0;
  if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
  fclose(file);
  return seconds;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  using Function = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int outcome = real(clock, time);
  if (outcome == 0 && clock == CLOCK_REALTIME) time->tv_sec -= seconds_back();
  return outcome;
}
