// What an agent can do in its room, and what cannot be done from there.
#include "propose/agent_sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files.h"
#include "base/process.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AgentSandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_agent_sandbox(); !why.empty()) GTEST_SKIP() << why;
    for (const char* name : {"root", "workspace", "secrets"})
      fs::create_directories(folder_ / name);
    ASSERT_TRUE(write_file(folder_ / "socket", "").ok());
    ASSERT_TRUE(write_file(folder_ / "secrets/oracle.txt", "the oracle").ok());
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  ProcessOutcome run(const std::string& script, double timeout_s = 20) {
    const auto sandbox = AgentSandbox::prepare({.workspace = folder_ / "workspace",
                                                .socket = folder_ / "socket",
                                                .kbeam = "/bin/true",
                                                .root = folder_ / "root",
                                                .access = access_});
    EXPECT_TRUE(sandbox.ok());
    const auto outcome = run_process({.command = {"/bin/sh", "-c", script},
                                      .folder = {},
                                      .environment = sandbox->environment(),
                                      .timeout_s = timeout_s,
                                      .output_limit_bytes = 4096,
                                      .own_processes = true,
                                      .before_exec = sandbox->hook()});
    EXPECT_TRUE(outcome.ok()) << outcome.error().text();
    return outcome.ok() ? *outcome : ProcessOutcome{};
  }
  // A process outside that has this word on its command line.
  static bool lives(const std::string& word) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto line = read_file(entry.path() / "cmdline");
      if (line.ok() && line->find(word) != std::string::npos &&
          line->find("gtest") == std::string::npos)
        return true;
    }
    return false;
  }

  fs::path folder_ = make_temporary_folder("/tmp", "kbeam-sandbox-test-").value();
  AgentAccess access_;
};

TEST_F(AgentSandboxTest, WorksInItsWorkspaceAndItsExitCodeIsKnown) {
  fs::create_directory(folder_ / "workspace/sources");
  ASSERT_TRUE(write_file(folder_ / "workspace/sources/one.cpp", "// one\n").ok());
  const ProcessOutcome outcome =
      run("pwd; cat sources/one.cpp; echo mine > sources/file; cat sources/file; echo $HOME; "
          "kbeam; exit 7");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.output, "/workspace\n// one\nmine\n/home/agent\n");
}

// What it makes is memory of its room: nothing of it is on a disk, where others could read it or
// run it with its owner's rights, or where its removal could take longer than the campaign.
TEST_F(AgentSandboxTest, NothingThatItMakesIsLeft) {
  EXPECT_EQ(run("cp /bin/sh shell && chmod 6755 shell && mkdir -p a/b && chmod 0 a").exit_code, 0);
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "workspace")) {
    ADD_FAILURE() << entry.path();
    ++count;
  }
  EXPECT_EQ(count, 0);
}

TEST_F(AgentSandboxTest, ItsFilesAreLimitedInTheirNumberHoweverDeepTheyLie) {
  EXPECT_NE(run("mkdir $(seq 51000)").exit_code, 0);
  EXPECT_NE(run("/usr/bin/python3 -c '\nimport os\nfor i in range(51000):\n  os.mkdir(\"d\")\n"
                "  os.chdir(\"d\")\n'")
                .exit_code,
            0);
}

TEST_F(AgentSandboxTest, AFileThatItIsGrantedLendsNoRights) {
  access_.write = {(folder_ / "secrets").string()};
  EXPECT_THAT(run("grep ' " + (folder_ / "secrets").string() + " ' /proc/self/mounts").output,
              HasSubstr("nosuid"));
}

TEST_F(AgentSandboxTest, SeesNothingOfWhoeverRunsIt) {
  const std::string secret = (folder_ / "secrets/oracle.txt").string();
  EXPECT_THAT(run("cat " + secret).output, HasSubstr("No such file"));
  EXPECT_NE(run("ls /root || ls " + std::string(KBEAM_SOURCE_DIR)).exit_code, 0);
  EXPECT_NE(run("cat /etc/shadow").exit_code, 0);
  ::setenv("KBEAM_TEST_KEY", "hunter2", 1);
  EXPECT_EQ(run("env | grep -c hunter2").output, "0\n");
  // Processes of the outside cannot be named, so neither can their command lines.
  EXPECT_EQ(run("cat /proc/" + std::to_string(::getpid()) + "/cmdline").output.find("room"),
            std::string::npos);
  EXPECT_NE(run("kill -0 " + std::to_string(::getpid())).exit_code, 0);
}

TEST_F(AgentSandboxTest, ChangesNothingOutsideItsWorkspace) {
  EXPECT_NE(run("echo x > /usr/bin/kbeam-was-here").exit_code, 0);
  EXPECT_NE(run("echo x > /opt/kbeam/bin/kbeam").exit_code, 0);
  EXPECT_EQ(run("rm -rf /workspace/* /workspace/.[a-z]* /tmp /home /etc; mount -o remount,rw /usr")
                    .exit_code == 0,
            false);
  EXPECT_TRUE(fs::exists(folder_ / "workspace"));
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

TEST_F(AgentSandboxTest, HasNoNetworkUnlessItIsGranted) {
  const char* const count =
      "grep -c : /proc/net/dev 2>/dev/null || ls /sys/class/net 2>/dev/null | wc -l";
  const std::string interfaces = run(count).output;
  EXPECT_TRUE(interfaces == "1\n" || interfaces == "0\n") << interfaces;  // lo, which is down
  EXPECT_NE(run("cat /etc/resolv.conf").exit_code, 0);
}

TEST_F(AgentSandboxTest, GrantsArePathsByName) {
  access_.read = {(folder_ / "secrets").string()};
  EXPECT_EQ(run("cat " + (folder_ / "secrets/oracle.txt").string()).output, "the oracle");
  EXPECT_NE(run("echo x > " + (folder_ / "secrets/new").string()).exit_code, 0);
  access_ = {};
  access_.write = {(folder_ / "secrets").string()};
  EXPECT_EQ(run("echo x > " + (folder_ / "secrets/new").string()).exit_code, 0);
  access_ = {};
  access_.environment = {"KBEAM_TEST_KEY"};
  ::setenv("KBEAM_TEST_KEY", "hunter2", 1);
  EXPECT_EQ(run("echo $KBEAM_TEST_KEY").output, "hunter2\n");
  access_.read = {"/nowhere/at/all"};
  EXPECT_FALSE(AgentSandbox::prepare({.root = folder_, .access = access_}).ok());
}

TEST_F(AgentSandboxTest, NothingOutlivesIt) {
  // Seconds, on the command line of what is left behind; not those of the same test elsewhere.
  const std::string mark = "98765." + std::to_string(::getpid());
  EXPECT_EQ(run("setsid sleep " + mark + " & (sleep " + mark + " &) ; exit 0").exit_code, 0);
  EXPECT_FALSE(lives(mark));
  const ProcessOutcome hung = run("setsid sleep " + mark + " & trap '' TERM; sleep " + mark, 1);
  EXPECT_TRUE(hung.timed_out);
  EXPECT_FALSE(lives(mark));
}

TEST_F(AgentSandboxTest, AForkBombEndsTheRoom) {
  const ProcessOutcome outcome = run("i=0; while :; do sleep 30 & done", 20);
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_NE(outcome.exit_code, 0);
}

TEST_F(AgentSandboxTest, AFloodOfOutputIsCut) {
  const ProcessOutcome outcome = run("head -c 3000000 /dev/zero | tr '\\0' x");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_LT(outcome.output.size(), 5000u);
  EXPECT_THAT(outcome.output, HasSubstr("more bytes of output"));
}

}  // namespace
}  // namespace kbeam
