// One measurement at a time on this machine: a file lock that every kbeam takes while it times.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/file_lock.h"
#include "base/result.h"

namespace kbeam {

class TimingLock {
 public:
  // Waits for the lock. `on_wait` is called once, with the holder in words, when it is not free at
  // once.
  static Result<std::unique_ptr<TimingLock>> acquire(
      const std::function<void(const std::string& holder)>& on_wait,
      const std::filesystem::path& file = default_file());
  static std::filesystem::path default_file();

 private:
  explicit TimingLock(std::unique_ptr<FileLock> lock) : lock_(std::move(lock)) {}
  std::unique_ptr<FileLock> lock_;
};

}  // namespace kbeam
