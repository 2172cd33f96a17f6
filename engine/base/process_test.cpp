#include "base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace kbeam {
namespace {

using testing::HasSubstr;

ProcessRequest shell(const std::string& script) {
  return {
      .command = {"/bin/sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}, .timeout_s = 30};
}

// Waits, without sleeping, for a process that is not our child to be gone.
bool dies(pid_t process) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (handle < 0) return errno == ESRCH;
  pollfd watched{handle, POLLIN, 0};
  const bool gone = ::poll(&watched, 1, 20'000) == 1;
  ::close(handle);
  return gone;
}

TEST(Process, reports_exit_code_and_both_streams) {
  const auto outcome = run_process(shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(outcome.ok()) << outcome.error().text();
  EXPECT_EQ(outcome->exit_code, 7);
  EXPECT_EQ(outcome->signal, 0);
  EXPECT_FALSE(outcome->timed_out);
  EXPECT_EQ(outcome->output, "out\nerr\n");
}

TEST(Process, reports_a_signal) {
  const auto outcome = run_process(shell("kill -SEGV $$"));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, -1);
  EXPECT_EQ(outcome->signal, SIGSEGV);
}

TEST(Process, timeout_kills_the_whole_group) {
  ProcessRequest request = shell("sleep 1000 & echo $!; wait");
  request.timeout_s = 1;
  const auto outcome = run_process(request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->timed_out);
  EXPECT_EQ(outcome->signal, SIGKILL);
  const pid_t grandchild = std::atoi(outcome->output.c_str());
  ASSERT_GT(grandchild, 1);
  EXPECT_TRUE(dies(grandchild));
}

TEST(Process, leaves_no_grandchild_after_a_normal_end) {
  const auto outcome = run_process(shell("sleep 1000 & echo $!"));
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 0);
  const pid_t grandchild = std::atoi(outcome->output.c_str());
  ASSERT_GT(grandchild, 1);
  EXPECT_TRUE(dies(grandchild));
}

enum class Victims { judge, warden_then_judge };

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream list("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

// Kills the warden of `judge`, which runs `program`, and waits for the next one.
void kill_warden(pid_t judge, pid_t program) {
  pid_t warden = 0;
  for (const pid_t child : children_of(judge))
    if (child != program) warden = child;
  ::kill(warden, SIGKILL);
  for (bool replaced = false; !replaced;)
    for (const pid_t child : children_of(judge))
      replaced = replaced || (child != program && child != warden);
}

// A process that runs `script`, which writes its own id and that of a child, and is then killed.
std::pair<pid_t, pid_t> kill_while_running(const std::string& script, Victims victims) {
  int pipe[2];
  if (::pipe(pipe) != 0) return {};
  const pid_t judge = ::fork();
  if (judge == 0) {
    ProcessRequest request = shell(script + " >&9");
    // The hook runs in the child: it keeps the pipe open over exec.
    request.before_exec = [&] { return ::dup2(pipe[1], 9) == 9; };
    const auto outcome = run_process(request);
    ::_exit(outcome.ok() ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string text;
  char letter = 0;
  while (std::count(text.begin(), text.end(), '\n') < 2 && ::read(pipe[0], &letter, 1) == 1)
    text += letter;
  ::close(pipe[0]);
  pid_t program = 0, grandchild = 0;
  std::istringstream(text) >> program >> grandchild;
  if (victims == Victims::warden_then_judge) kill_warden(judge, program);
  ::kill(judge, SIGKILL);
  ::waitpid(judge, nullptr, 0);
  return {program, grandchild};
}

TEST(Process, nothing_outlives_a_killed_parent_not_even_grandchildren) {
  const auto [child, grandchild] =
      kill_while_running("{ echo $$; sleep 1000 & echo $!; wait; }", Victims::judge);
  ASSERT_GT(child, 1);
  ASSERT_GT(grandchild, 1);
  EXPECT_TRUE(dies(child));
  EXPECT_TRUE(dies(grandchild));
}

TEST(Process, a_killed_warden_is_replaced) {
  const auto [child, grandchild] =
      kill_while_running("{ echo $$; sleep 1000 & echo $!; wait; }", Victims::warden_then_judge);
  ASSERT_GT(child, 1);
  ASSERT_GT(grandchild, 1);
  EXPECT_TRUE(dies(child));
  EXPECT_TRUE(dies(grandchild));
}

// Whether all that `script` started has ended when run_process returns: a pipe that every one of
// them holds open has no writer left at that very moment.
bool leaves_nothing(const std::string& script, double timeout_s) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return false;
  ProcessRequest request = shell(script);
  request.timeout_s = timeout_s;
  request.own_processes = true;
  request.before_exec = [&] { return ::dup2(pipe[1], 9) == 9; };
  const auto outcome = run_process(request);
  EXPECT_TRUE(outcome.ok()) << outcome.error().text();
  ::close(pipe[1]);
  pollfd watched{pipe[0], POLLIN, 0};
  const bool gone = ::poll(&watched, 1, 0) == 1 && watched.revents == POLLHUP;
  ::close(pipe[0]);
  return gone;
}

TEST(Process, with_processes_of_its_own_nothing_outlives_the_call) {
  if (!run_process({.command = {"/bin/true"}, .own_processes = true}).ok())
    GTEST_SKIP() << "no namespaces here";
  EXPECT_TRUE(leaves_nothing("setsid sleep 1000 & (sleep 1000 &) ; exit 0", 30));
  EXPECT_TRUE(leaves_nothing("setsid sleep 1000 & trap '' TERM; sleep 1000", 1));
}

TEST(Process, cuts_long_output_and_says_so) {
  ProcessRequest request =
      shell("i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done; exit 3");
  request.output_limit_bytes = 100;
  const auto outcome = run_process(request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 3);
  EXPECT_THAT(outcome->output, testing::StartsWith("0123456789\n"));
  EXPECT_THAT(outcome->output, HasSubstr("[cut: 54900 more bytes of output]"));
}

TEST(Process, gives_exactly_the_environment_asked_for) {
  ::setenv("KBEAM_TEST_LEAK", "1", 1);
  ProcessRequest request{
      .command = {"/usr/bin/env"}, .environment = {"B=2", "A=one two"}, .timeout_s = 30};
  const auto outcome = run_process(request);
  ::unsetenv("KBEAM_TEST_LEAK");
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "B=2\nA=one two\n");
}

TEST(Process, finds_a_program_through_the_path_of_the_request) {
  ProcessRequest request{
      .command = {"true"}, .environment = {"PATH=/nowhere:/usr/bin:/bin"}, .timeout_s = 30};
  EXPECT_TRUE(run_process(request).ok());
  request.environment = {"PATH=/nowhere"};
  const auto outcome = run_process(request);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::not_found);
  EXPECT_THAT(outcome.error().text(), HasSubstr("could not run true"));
}

TEST(Process, names_a_missing_program_and_a_missing_folder) {
  const auto program = run_process({.command = {"/no/such/program"}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, ErrorCode::not_found);
  const auto folder = run_process({.command = {"/bin/true"}, .folder = "/no/such/folder"});
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.error().text(), HasSubstr("/no/such/folder"));
}

TEST(Process, runs_in_the_folder_with_stdin_empty) {
  ProcessRequest request = shell("pwd; cat; echo end");
  request.folder = "/usr";
  const auto outcome = run_process(request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "/usr\nend\n");
}

TEST(Process, limits_written_files) {
  const std::string file = testing::TempDir() + "kbeam_process_test_big";
  ProcessRequest request = shell("exec head -c 100000 /dev/zero > " + file);
  request.file_bytes = 1000;
  const auto outcome = run_process(request);
  ::unlink(file.c_str());
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->signal, SIGXFSZ);
}

TEST(Process, limits_memory) {
  ProcessRequest request = shell("ulimit -v");
  request.memory_bytes = 512LL << 20;
  const auto outcome = run_process(request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "524288\n");
}

TEST(Process, idle_priority_reaches_the_program) {
  ProcessRequest request = shell("cut -d' ' -f41 /proc/self/stat");
  request.idle_priority = true;
  const auto outcome = run_process(request);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "5\n");  // SCHED_IDLE
}

TEST(Process, a_hook_that_fails_ends_the_child_before_exec) {
  ProcessRequest request = shell("echo ran");
  request.before_exec = [] {
    errno = EPERM;
    return false;
  };
  const auto outcome = run_process(request);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().text(), HasSubstr("sandbox could not be set up"));
  request.before_exec = [] { return ::chdir("/usr") == 0; };
  request.command[2] = "pwd";
  const auto hooked = run_process(request);
  ASSERT_TRUE(hooked.ok());
  EXPECT_EQ(hooked->output, "/usr\n");
}

TEST(Process, does_not_leak_descriptors) {
  const int leak = ::dup(1);  // not close-on-exec
  const auto outcome = run_process(shell("ls /proc/self/fd | wc -l"));
  ::close(leak);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->output, "4\n");  // three streams and the folder that ls reads
}

}  // namespace
}  // namespace kbeam
