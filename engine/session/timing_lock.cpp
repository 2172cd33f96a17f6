#include "session/timing_lock.h"

namespace kbeam {

std::filesystem::path TimingLock::default_file() {
  return "/tmp/kbeam-timing.lock";
}

Result<std::unique_ptr<TimingLock>> TimingLock::acquire(
    const std::function<void(const std::string&)>& on_wait, const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileLock> lock, FileLock::acquire(path, on_wait));
  return std::unique_ptr<TimingLock>(new TimingLock(std::move(lock)));
}

}  // namespace kbeam
