// A folder in the folder for temporary files, for its owner alone and gone with the object: what
// others must not read, or must not run (a file in it with a set-user-id bit would lend them its
// owner's rights). What a killed process left is removed by the next one that makes such a folder.
#pragma once

#include <filesystem>
#include <string_view>
#include <utility>

#include "base/own_lock.h"
#include "base/result.h"

namespace kbeam {

class PrivateFolder {
 public:
  // Named `prefix` and random letters.
  static Result<PrivateFolder> make(std::string_view prefix);
  PrivateFolder(PrivateFolder&& other) noexcept;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  PrivateFolder(std::filesystem::path path, OwnLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  OwnLock lock_;  // held while it is in use: what nobody holds is abandoned
};

// Where temporary files go; an error where TMPDIR names no folder.
Result<std::filesystem::path> find_temporary_folder();

}  // namespace kbeam
