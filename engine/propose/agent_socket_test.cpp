#include "propose/agent_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class AgentSocketTest : public testing::Test {
 protected:
  fs::path folder_ = make_temporary_folder("/tmp", "kbeam-socket-").value();
  fs::path path_ = folder_ / "socket";
  std::unique_ptr<AgentSocket> listen(AgentSocket::Handle handle) {
    return AgentSocket::listen(path_, std::move(handle)).value();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // What comes back for these bytes.
  std::string send_raw(const std::string& bytes) const {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    EXPECT_EQ(::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    ::shutdown(connection, SHUT_WR);
    std::string reply;
    char chunk[4096];
    for (ssize_t count = 0; (count = ::recv(connection, chunk, sizeof chunk, 0)) > 0;)
      reply.append(chunk, static_cast<std::size_t>(count));
    ::close(connection);
    return reply;
  }
};

TEST_F(AgentSocketTest, ARequestThatNestsWithoutEndIsRefused) {
  const auto socket = listen([](const AgentRequest&, const std::function<bool()>&) {
    ADD_FAILURE() << "it was understood";
    return AgentReply{};
  });
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  for (const std::string& arguments : {deep, "{\"a\":" + deep + "}"})
    EXPECT_THAT(
        send_raw(R"({"command":"ask","file_name":"","source":"","arguments":)" + arguments + "}\n"),
        HasSubstr("was not understood"));
}

TEST_F(AgentSocketTest, CarriesARequestAndItsReply) {
  AgentRequest seen;
  const auto socket = listen([&](const AgentRequest& request, const std::function<bool()>&) {
    seen = request;
    return AgentReply{1, "out\n", "\xff err"};
  });
  AgentRequest request{.command = "check",
                       .arguments = {{"--case", {"c64", "c512"}}},
                       .file_name = "mine.cpp",
                       .source = std::string(300'000, 'x') + "\n\"quoted\""};
  const auto reply = ask_agent_socket(path_, request);
  ASSERT_TRUE(reply.ok()) << reply.error().text();
  EXPECT_EQ(reply->exit_code, 1);
  EXPECT_EQ(reply->output, "out\n");
  EXPECT_THAT(reply->errors, HasSubstr(" err"));
  EXPECT_EQ(seen.command, "check");
  EXPECT_EQ(seen.arguments, request.arguments);
  EXPECT_EQ(seen.source, request.source);
}

TEST_F(AgentSocketTest, RefusesWhatIsNoRequestAndServesTheNext) {
  int handled = 0;
  const auto socket = listen([&](const AgentRequest&, const std::function<bool()>&) {
    ++handled;
    return AgentReply{0, "fine", ""};
  });
  for (const char* bytes : {"", "\n", "{}\n", "[1]\n", "half", "{\"command\":3}\n",
                            "{\"command\":\"check\",\"arguments\":{\"a\":\"b\"}}\n"})
    EXPECT_THAT(send_raw(bytes), HasSubstr("not understood")) << bytes;
  EXPECT_EQ(handled, 0);
  EXPECT_TRUE(ask_agent_socket(path_, {.command = "ask"}).ok());
  EXPECT_EQ(handled, 1);
}

TEST_F(AgentSocketTest, ClosingEndsWhatIsUnderWay) {
  std::atomic<bool> began{false};
  auto socket = listen([&](const AgentRequest&, const std::function<bool()>& cancelled) {
    began = true;
    while (!cancelled()) std::this_thread::yield();
    return AgentReply{};
  });
  std::thread client(
      [&] { static_cast<void>(ask_agent_socket(path_, {.command = "bench"}).ok()); });
  while (!began) std::this_thread::yield();
  socket.reset();
  client.join();
  EXPECT_FALSE(ask_agent_socket(path_, {.command = "bench"}).ok());
}

TEST(PointLimit, GivesPointsBackWithTime) {
  ManualClock clock;
  PointLimit limit(clock, 60, 10);  // one a second
  EXPECT_EQ(limit.take(10), "");
  EXPECT_EQ(limit.take(4), "4 s");
  clock.advance_ns(3'000'000'000);
  EXPECT_EQ(limit.take(4), "1 s");
  EXPECT_EQ(limit.take(3), "");
  clock.advance_ns(3'600'000'000'000);
  EXPECT_EQ(limit.take(10), "");  // no more than the most, however long nobody asked
  EXPECT_NE(limit.take(1), "");
}

}  // namespace
}  // namespace kbeam
