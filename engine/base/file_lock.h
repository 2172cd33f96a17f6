// An exclusive lock that is a file, shared by every user of a machine. The kernel frees it when the
// holder dies, so a crash leaves nothing behind. Knows nothing of what it guards.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace kbeam {

class FileLock {
 public:
  // Waits for the lock. `on_wait` is called once, with the holder in words, when it is not free at
  // once.
  static Result<std::unique_ptr<FileLock>> acquire(
      const std::filesystem::path& file,
      const std::function<void(const std::string& holder)>& on_wait);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(int file) : file_(file) {}
  int file_;
};

// Opens a file in a folder that everybody may write to, such as /tmp, for reading and writing by
// every user; -1 with errno set when it cannot be done. Never follows a link.
int open_shared_file(const std::filesystem::path& path);

}  // namespace kbeam
