#include "archive/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/own_lock.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

std::string holder_of(int file) {
  char text[32] = {};
  const ssize_t size = ::pread(file, text, sizeof text - 1, 0);
  const std::string pid = size > 0 ? std::string(text, std::strcspn(text, "\n")) : "";
  return pid.empty() ? "another kbeam" : "kbeam with process id " + pid;
}

fs::path lock_path(fs::path archive_file) {
  return archive_file.replace_extension(".lock");
}

// Whoever asks for the holder has the lock for a moment, and so has a killed holder's last child:
// a lock that stays taken is a writer's.
bool lock_soon(int file) {
  constexpr int kAttempts = 20;
  constexpr timespec kPause{0, 10'000'000};
  for (int attempt = 1; ::flock(file, LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno != EINTR && (errno != EWOULDBLOCK || attempt >= kAttempts)) return false;
    ::nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace

Result<WriterLock> WriterLock::take(const fs::path& archive_file) {
  const fs::path path = lock_path(archive_file);
  const std::string what = "open archive " + archive_file.string() + " for writing";
  for (;;) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
      return Error{ErrorCode::io, what, path.string() + ": " + std::strerror(errno),
                   "check that the run's folder exists and can be written"};
    if (!lock_soon(file)) {
      const int reason = errno;
      const std::string holder = holder_of(file);
      ::close(file);
      if (reason == EWOULDBLOCK)
        return Error{ErrorCode::busy, what, holder + " is writing to it",
                     "wait for it, stop it with `kbeam stop`, or choose another --dir"};
      return Error{ErrorCode::io, what, path.string() + ": " + std::strerror(reason),
                   "keep runs on a file system that supports flock"};
    }
    if (!is_still_at(path, file)) {  // the holder removes it when it ends
      ::close(file);
      continue;
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    // The pid only helps people; the lock holds without it, on a full disk too.
    if (::ftruncate(file, 0) == 0)
      static_cast<void>(::pwrite(file, pid.data(), pid.size(), 0) >= 0);
    return WriterLock(path, file);
  }
}

std::optional<std::string> WriterLock::find_holder(const fs::path& archive_file) {
  const int file = ::open(lock_path(archive_file).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::nullopt;
  std::optional<std::string> holder;
  if (::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) holder = holder_of(file);
  ::close(file);
  return holder;
}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

WriterLock::~WriterLock() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace kbeam
