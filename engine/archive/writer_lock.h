// At most one process appends to a run: an exclusive flock on a file beside the archive. The kernel
// drops it when the holder dies, however it dies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"

namespace kbeam {

class WriterLock {
 public:
  // Fails at once, naming the holder, when somebody has it. `archive.sqlite` is guarded by
  // `archive.lock`.
  static Result<WriterLock> take(const std::filesystem::path& archive_file);
  // Who has it, as people say it; empty when nobody does.
  static std::optional<std::string> find_holder(const std::filesystem::path& archive_file);
  WriterLock(WriterLock&& other) noexcept;
  WriterLock& operator=(WriterLock&&) = delete;
  ~WriterLock();

 private:
  WriterLock(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

}  // namespace kbeam
