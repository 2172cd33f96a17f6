#include "base/own_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace kbeam {
namespace fs = std::filesystem;
namespace {

bool is_part(const std::string& name) {
  const std::size_t tail = kPartMark.size() + kPartLetters;
  return name.size() > tail && name.compare(name.size() - tail, kPartMark.size(), kPartMark) == 0;
}

}  // namespace

bool is_still_at(const fs::path& path, int file) {
  struct stat mine {};
  struct stat there {};
  return ::fstat(file, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

std::vector<fs::path> remove_abandoned_parts(const fs::path& folder) {
  std::vector<fs::path> removed;
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, trouble)) {
    if (!is_part(entry.path().filename().string()) || !entry.is_regular_file(trouble)) continue;
    const auto lock = OwnLock::try_take(entry.path());
    if (lock && fs::remove(entry.path(), trouble)) removed.push_back(entry.path());
  }
  return removed;
}

std::optional<OwnLock> OwnLock::try_take(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  OwnLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0 || !is_still_at(path, file)) return std::nullopt;
  return lock;
}

OwnLock::OwnLock(OwnLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

OwnLock::~OwnLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace kbeam
