#include "base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

class FileLockTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_folder(fs::temp_directory_path(), "lock-"); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

// Whether another process finds the lock taken, and which holder it is told of.
std::string holder_seen_elsewhere(const fs::path& file) {
  int pipe_ends[2];
  EXPECT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::acquire(file, [&](const std::string& holder) {
      const ssize_t sent = ::write(pipe_ends[1], holder.data(), holder.size());
      ::_exit(sent < 0 ? 2 : 1);  // do not wait for what the parent holds
    });
    ::_exit(lock.ok() ? 0 : 3);
  }
  ::close(pipe_ends[1]);
  char text[128] = {};
  const ssize_t size = ::read(pipe_ends[0], text, sizeof text - 1);
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return size > 0 ? text : "";
}

TEST_F(FileLockTest, IsExclusiveAndNamesItsHolder) {
  const fs::path file = folder_ / "a.lock";
  auto lock = FileLock::acquire(file, nullptr);
  ASSERT_TRUE(lock.ok()) << lock.error().text();
  EXPECT_EQ(holder_seen_elsewhere(file), "process " + std::to_string(::getpid()));
  lock->reset();
  EXPECT_EQ(holder_seen_elsewhere(file), "");
}

TEST_F(FileLockTest, NamesNoHolderThatIsNoNumber) {
  const fs::path file = folder_ / "a.lock";
  const auto lock = FileLock::acquire(file, nullptr);
  ASSERT_TRUE(lock.ok());
  const int other = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(other, "1\x1b[2J", 5, 0), 5);
  ::close(other);
  EXPECT_EQ(holder_seen_elsewhere(file), "another kbeam");
}

TEST_F(FileLockTest, IsUsableByEveryUser) {
  const fs::path file = folder_ / "a.lock";
  const mode_t old = ::umask(0077);
  const auto lock = FileLock::acquire(file, nullptr);
  ::umask(old);
  ASSERT_TRUE(lock.ok());
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0666U);
}

TEST_F(FileLockTest, RefusesALink) {
  fs::create_symlink("/etc/passwd", folder_ / "a.lock");
  EXPECT_FALSE(FileLock::acquire(folder_ / "a.lock", nullptr).ok());
}

}  // namespace
}  // namespace kbeam
