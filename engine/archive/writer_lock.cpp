#include "archive/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace kbeam {
namespace fs = std::filesystem;
namespace {

std::string holder_of(int file) {
  char text[32] = {};
  const ssize_t size = ::pread(file, text, sizeof text - 1, 0);
  const std::string pid = size > 0 ? std::string(text, std::strcspn(text, "\n")) : "";
  return pid.empty() ? "another kbeam" : "kbeam with process id " + pid;
}

// The holder removes the file when it ends: a lock on a removed file guards nothing.
bool still_at(const fs::path& path, int file) {
  struct stat mine {};
  struct stat there {};
  return ::fstat(file, &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

}  // namespace

Result<WriterLock> WriterLock::take(const fs::path& archive_file) {
  fs::path path = archive_file;
  path.replace_extension(".lock");
  const std::string what = "open archive " + archive_file.string() + " for writing";
  for (;;) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
      return Error{ErrorCode::io, what, path.string() + ": " + std::strerror(errno),
                   "check that the run's folder exists and can be written"};
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      const std::string holder = holder_of(file);
      ::close(file);
      if (reason == EINTR) continue;
      if (reason == EWOULDBLOCK)
        return Error{ErrorCode::busy, what, holder + " is writing to it",
                     "wait for it, stop it with `kbeam stop`, or choose another --dir"};
      return Error{ErrorCode::io, what, path.string() + ": " + std::strerror(reason),
                   "keep runs on a file system that supports flock"};
    }
    if (!still_at(path, file)) {
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

WriterLock::WriterLock(WriterLock&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

WriterLock::~WriterLock() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace kbeam
