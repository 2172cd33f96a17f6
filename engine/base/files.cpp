#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "base/entropy.h"
#include "base/own_lock.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

struct PartFile {
  int file = -1;  // locked until it is closed: a part without a lock is abandoned
  fs::path path;
};

PartFile open_part(const fs::path& goal) {
  for (;;) {
    PartFile part;
    part.path = goal.string() + std::string(kPartMark) + random_letters(kPartLetters);
    part.file = ::open(part.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (part.file < 0) return part;
    // Between these two lines it looks abandoned, and may be removed: then begin again.
    if (::flock(part.file, LOCK_EX | LOCK_NB) == 0 && is_still_at(part.path, part.file))
      return part;
    // A file system without flock: nobody can take it for abandoned there.
    if (errno != EWOULDBLOCK && is_still_at(part.path, part.file)) return part;
    ::close(part.file);
  }
}

// The step that failed, with errno; null when `goal` now has the content.
const char* fill(const PartFile& part, std::string_view content, const fs::path& goal) {
  while (!content.empty()) {
    const ssize_t step = ::write(part.file, content.data(), content.size());
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return "write";
    content.remove_prefix(static_cast<std::size_t>(step));
  }
  if (::fsync(part.file) != 0) return "sync";
  return ::rename(part.path.c_str(), goal.c_str()) == 0 ? nullptr : "rename";
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  constexpr std::uintmax_t kMostBytes = 1ULL << 30;
  // A pipe or a device would block or never end.
  std::error_code trouble;
  if (const fs::file_status status = fs::status(path, trouble); fs::exists(status)) {
    if (!fs::is_regular_file(status))
      return Error{ErrorCode::bad_input, "read " + path.string(), "it is no regular file",
                   "name a file with the content itself"};
    if (fs::file_size(path, trouble) > kMostBytes)
      return Error{ErrorCode::bad_input, "read " + path.string(), "it is larger than 1 GiB",
                   "is this the right file?"};
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return Error{ErrorCode::not_found, "read " + path.string(), std::strerror(errno),
                 "check the path"};
  std::ostringstream content;
  content << stream.rdbuf();
  if (stream.bad())
    return Error{ErrorCode::io, "read " + path.string(), std::strerror(errno), "check the disk"};
  return std::move(content).str();
}

Result<void> write_file(const fs::path& path, std::string_view content) {
  const auto failed = [&](const char* step) {
    return Error{ErrorCode::io, "write " + path.string(),
                 std::string(step) + ": " + std::strerror(errno),
                 "check free space and permissions of " + path.parent_path().string()};
  };
  const PartFile part = open_part(path);
  if (part.file < 0) return failed("create");
  const char* const step = fill(part, content, path);
  if (step == nullptr) {
    ::close(part.file);
    return {};
  }
  const Error error = failed(step);
  ::unlink(part.path.c_str());
  ::close(part.file);
  return error;
}

Result<fs::path> make_temporary_folder(const fs::path& parent, std::string_view prefix) {
  std::error_code trouble;
  fs::create_directories(parent, trouble);
  for (int attempt = 0; attempt < 16; ++attempt) {
    const fs::path folder = parent / (std::string(prefix) + random_letters(10));
    if (fs::create_directory(folder, trouble)) return folder;
  }
  return Error{ErrorCode::io, "make a folder in " + parent.string(), trouble.message(),
               "check free space and permissions"};
}

Result<Home> find_home() {
  std::error_code trouble;
  const fs::path self = fs::read_symlink("/proc/self/exe", trouble);
  std::vector<fs::path> tried;
  const auto at = [&](const fs::path& share, const fs::path& runner) -> Home {
    tried.push_back(share);
    const fs::path programs = runner.parent_path();
    return {.contract_include = share / "contract/include",
            .problems = share / "problems",
            .runner = runner,
            .planner = programs / "kbeam-planner",
            .worker = programs / "kbeam-worker",
            .devices = share / "contract/devices",
            .problem_template = share / "problems/template"};
  };
  const auto complete = [](const Home& home) {
    return fs::exists(home.contract_include / "kbeam/candidate.h") && fs::exists(home.runner);
  };
  if (const char* named = std::getenv("KBEAM_HOME")) {
    const Home home = at(named, self.parent_path() / "kbeam-runner");
    if (complete(home)) return home;
  }
  // In a build tree the binary lies in <source>/build*/; installed, in <prefix>/bin/.
  for (fs::path folder = self.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const Home home = at(folder, self.parent_path() / "kbeam-runner");
    if (complete(home)) return home;
  }
  const fs::path prefix = self.parent_path().parent_path();
  const Home installed = at(prefix / "share/kbeam", prefix / "libexec/kbeam/kbeam-runner");
  if (complete(installed)) return installed;
  std::string places;
  for (const fs::path& place : tried) places += (places.empty() ? "" : ", ") + place.string();
  return Error{ErrorCode::not_found, "find kbeam's own files",
               "no contract headers and runner in any of " + places,
               "reinstall, or set KBEAM_HOME to the folder that holds contract/ and problems/"};
}

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return fs::path(cache) / "kbeam";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache/kbeam";
  std::error_code trouble;
  const fs::path temporary = fs::temp_directory_path(trouble);
  return (trouble ? fs::path("/tmp") : temporary) / "kbeam-cache";
}

}  // namespace kbeam
