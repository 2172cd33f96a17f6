// Deadlines against real child processes; no test waits for more than the kernel.
#include "target/cpu/watchdog.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kbeam {
namespace {

// A child that waits for ever, and the descriptor that the watchdog needs.
struct Sleeper {
  pid_t process = fork();
  int pidfd = -1;
  Sleeper() {
    if (process == 0)
      for (;;) pause();
    pidfd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  }
  ~Sleeper() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    close(pidfd);
  }
};

TEST(Watchdog, KillsWhenTheDeadlinePasses) {
  Sleeper sleeper;
  Watchdog watchdog(sleeper.pidfd);
  watchdog.arm(0.01);
  siginfo_t about{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.process), &about, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(about.si_status, SIGKILL);
  EXPECT_TRUE(watchdog.disarm());
  EXPECT_FALSE(watchdog.disarm());
}

TEST(Watchdog, AnEarlierDeadlineAfterALaterOneStillCounts) {
  Sleeper sleeper;
  Watchdog watchdog(sleeper.pidfd);
  watchdog.arm(1000);
  EXPECT_FALSE(watchdog.disarm());
  watchdog.arm(0.01);
  siginfo_t about{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(sleeper.process), &about, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(watchdog.disarm());
}

TEST(Watchdog, LeavesADisarmedProcessAlone) {
  Sleeper sleeper;
  {
    Watchdog watchdog(sleeper.pidfd);
    for (int call = 0; call < 1000; ++call) {
      watchdog.arm(100);
      ASSERT_FALSE(watchdog.disarm());
    }
  }
  EXPECT_EQ(waitpid(sleeper.process, nullptr, WNOHANG), 0);
}

}  // namespace
}  // namespace kbeam
