// The lock of something in the making. Whoever makes a file or folder under a temporary name holds
// its lock, and the kernel drops that when the maker dies: so what is abandoned is told from what
// is being made now, without ages and clocks.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace kbeam {

class OwnLock {
 public:
  // Locks what `path` names. Empty when somebody else has it, or when it is gone.
  static std::optional<OwnLock> try_take(const std::filesystem::path& path);
  OwnLock(OwnLock&& other) noexcept;
  OwnLock& operator=(OwnLock&&) = delete;
  ~OwnLock();

 private:
  explicit OwnLock(int file) : file_(file) {}
  int file_;
};

// write_file() makes FILE.part-LETTERS first.
inline constexpr std::string_view kPartMark = ".part-";
inline constexpr int kPartLetters = 8;

// Removes what killed calls of write_file() left in `folder`; says what.
std::vector<std::filesystem::path> remove_abandoned_parts(const std::filesystem::path& folder);

// Whether `path` still names the open file: a lock on one that was removed guards nothing.
bool is_still_at(const std::filesystem::path& path, int file);

}  // namespace kbeam
