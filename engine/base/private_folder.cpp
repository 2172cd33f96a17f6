#include "base/private_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/entropy.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

constexpr int kLetters = 10;

// As made here: a folder that merely begins like one is somebody's.
bool has_form(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) && name.size() == prefix.size() + kLetters &&
         name.find_first_not_of(kRandomLetters, prefix.size()) == std::string::npos;
}

void remove_abandoned(const fs::path& parent, std::string_view prefix) {
  std::error_code trouble;
  std::vector<fs::path> abandoned;
  for (const auto& entry : fs::directory_iterator(parent, trouble))
    if (has_form(entry.path().filename().string(), prefix) && OwnLock::try_take(entry.path()))
      abandoned.push_back(entry.path());
  for (const fs::path& folder : abandoned) fs::remove_all(folder, trouble);
}

}  // namespace

Result<fs::path> find_temporary_folder() {
  std::error_code trouble;
  fs::path folder = fs::temp_directory_path(trouble);
  if (!trouble) return folder;
  return Error{ErrorCode::unavailable, "find the folder for temporary files", trouble.message(),
               "set TMPDIR to a folder that is there, or to nothing"};
}

Result<PrivateFolder> PrivateFolder::make(std::string_view prefix) {
  ASSIGN_OR_RETURN(const fs::path parent, find_temporary_folder());
  remove_abandoned(parent, prefix);
  std::string why = "others take it away before it is locked";
  constexpr int kAttempts = 16;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fs::path path = parent / (std::string(prefix) + random_letters(kLetters));
    if (::mkdir(path.c_str(), S_IRWXU) != 0) {
      why = std::strerror(errno);
      continue;
    }
    // Between these two it looks abandoned, and may be removed: then begin again.
    if (auto lock = OwnLock::try_take(path))
      return PrivateFolder(std::move(path), std::move(*lock));
  }
  return Error{ErrorCode::io, "make a folder in " + parent.string(), why,
               "check free space and permissions, and what cleans that folder"};
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace kbeam
