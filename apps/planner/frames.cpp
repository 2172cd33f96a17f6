#include "planner/frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "target/cuda/planner_wire.h"

namespace kbeam::planner {
namespace {

int reply = STDOUT_FILENO;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(reply, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) _exit(planner_wire::kCannotPlan);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Not std::to_string: this also runs in a signal handler.
std::size_t put_number(char* at, std::int64_t number) {
  char digits[24];
  std::size_t count = 0;
  auto rest = static_cast<std::uint64_t>(number < 0 ? 0 : number);
  do {
    digits[count++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  for (std::size_t i = 0; i < count; ++i) at[i] = digits[count - 1 - i];
  return count;
}

}  // namespace

void open_reply() {
  reply = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 8);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  // Where the fence hides /dev/null the two are closed: printing then fails, which is as good.
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (null >= 0)
      dup2(null, stream);
    else
      close(stream);
  }
  if (reply < 0) _exit(planner_wire::kCannotPlan);
}

void write_frame(std::string_view kind, std::int64_t index, std::string_view payload) {
  char head[128];
  std::size_t length = 0;
  for (const std::string_view part : {planner_wire::kFrameStart, kind, std::string_view(" ")}) {
    std::memcpy(head + length, part.data(), part.size());
    length += part.size();
  }
  length += put_number(head + length, index);
  head[length++] = ' ';
  length += put_number(head + length, static_cast<std::int64_t>(payload.size()));
  head[length++] = '\n';
  write_all({head, length});
  write_all(payload);
  write_all("\n");
}

}  // namespace kbeam::planner
