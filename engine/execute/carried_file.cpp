#include "execute/carried_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace kbeam {
namespace fs = std::filesystem;

namespace {

constexpr off_t kMostBytes = off_t{1} << 30;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  void reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }

 private:
  int number_;
};

bool stays_inside(const fs::path& name) {
  if (name.empty() || name.is_absolute()) return false;
  for (const fs::path& part : name)
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

// Opens one name in a folder. A pipe does not block, and a link is not followed.
int open_in(int folder, const fs::path& name, int flags) {
  return ::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
}

bool is_link(int folder, const fs::path& name) {
  struct stat facts {};
  return ::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISLNK(facts.st_mode);
}

}  // namespace

bool is_carried(const fs::path& folder, std::string_view name) {
  std::error_code trouble;
  const fs::file_status status = fs::symlink_status(folder / name, trouble);
  return status.type() != fs::file_type::not_found && status.type() != fs::file_type::none;
}

Result<std::string> read_carried_file(const fs::path& folder, std::string_view name) {
  const fs::path relative(name);
  const std::string attempted = "read " + (folder / relative).string();
  const auto refused = [&](std::string happened) {
    return Error{ErrorCode::corrupt, attempted, std::move(happened),
                 "only regular files of the folder itself are read: copy it again"};
  };
  if (!stays_inside(relative)) return refused("its name leads out of the folder");
  Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (auto part = relative.begin(); part != relative.end(); ++part) {
    const bool is_last = std::next(part) == relative.end();
    const int next = at.get() < 0 ? -1 : open_in(at.get(), *part, is_last ? 0 : O_DIRECTORY);
    if (next < 0) {
      const int why = errno;
      if (at.get() >= 0 && is_link(at.get(), *part))
        return refused(part->string() + " is a symbolic link");
      return Error{why == ENOENT || why == ENOTDIR ? ErrorCode::not_found : ErrorCode::io,
                   attempted, std::strerror(why), "check the path"};
    }
    at.reset(next);
  }
  struct stat facts {};
  if (::fstat(at.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return refused("it is no regular file");
  if (facts.st_size > kMostBytes) return refused("it is larger than 1 GiB");
  std::string content(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t step = ::read(at.get(), content.data() + filled, content.size() - filled);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) return Error{ErrorCode::io, attempted, std::strerror(errno), "check the disk"};
    if (step == 0) break;
    filled += static_cast<std::size_t>(step);
  }
  content.resize(filled);
  return content;
}

}  // namespace kbeam
