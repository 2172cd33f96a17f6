#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace kbeam {
namespace {

std::string read_holder(int file) {
  char text[64] = {};
  const ssize_t size = ::pread(file, text, sizeof text - 1, 0);
  // Every user may write there: what is no number is not shown.
  const std::string_view number(text);
  return size > 0 && number.find_first_not_of("0123456789") == std::string_view::npos
             ? std::string("process ") + text
             : "another kbeam";
}

}  // namespace

int open_shared_file(const std::filesystem::path& path) {
  // O_NOFOLLOW: the folder is world-writable, so the name may be a link that somebody planted.
  // Opened without O_CREAT first: kernels that protect such folders refuse to "create" what another
  // user has made.
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0 && errno == ENOENT) {
    file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file >= 0) ::fchmod(file, 0666);  // the umask must not lock other users out
  }
  return file;
}

Result<std::unique_ptr<FileLock>> FileLock::acquire(
    const std::filesystem::path& path, const std::function<void(const std::string&)>& on_wait) {
  const auto failed = [&] {
    return Error{ErrorCode::io, "take the lock " + path.string(), std::strerror(errno),
                 "make the file readable and writable for every user of kbeam on this machine"};
  };
  const int file = open_shared_file(path);
  if (file < 0) return failed();
  std::unique_ptr<FileLock> lock(new FileLock(file));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed();
    if (on_wait) on_wait(read_holder(file));
    while (::flock(file, LOCK_EX) != 0)
      if (errno != EINTR) return failed();
  }
  const std::string self = std::to_string(::getpid());
  if (::ftruncate(file, 0) == 0 && ::pwrite(file, self.data(), self.size(), 0) < 0) return failed();
  return lock;
}

FileLock::~FileLock() {
  ::close(file_);
}

}  // namespace kbeam
