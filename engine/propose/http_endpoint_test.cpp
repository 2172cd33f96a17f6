// A server of one reply on loopback: what comes back of replies that are none, and that a server on
// this machine is reached past the proxies of the environment.
#include "propose/http_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/files.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;

class OneReply {
 public:
  explicit OneReply(std::string reply) : reply_(std::move(reply)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneReply() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }

 private:
  void serve() const {
    const int connection = ::accept(socket_, nullptr, nullptr);
    if (connection < 0) return;
    // The body of these requests ends with the brace that no part of it before does.
    std::string request;
    char chunk[4096];
    while (!request.ends_with("]}"))
      if (const ssize_t count = ::recv(connection, chunk, sizeof chunk, 0); count > 0)
        request.append(chunk, static_cast<std::size_t>(count));
      else
        break;
    EXPECT_GE(::send(connection, reply_.data(), reply_.size(), MSG_NOSIGNAL), 0);
    ::shutdown(connection, SHUT_RDWR);
    ::close(connection);
  }

  std::string reply_;
  int socket_ = -1;
  int port_ = 0;
  std::thread thread_;
};

ModelReply ask(const OneReply& server) {
  NewsBell bell;
  const auto endpoint =
      make_http_endpoint({.url = request_url(ModelApi::openai, server.url(), true).value(),
                          .key = Secret("sk-0123456789abcdef"),
                          .back_off = {.most_attempts = 1}},
                         bell);
  endpoint->send({.id = "q", .model = "m", .prompt = {"be brief", {{false, "hello"}}}});
  for (;;) {
    if (std::vector<ModelReply> replies = endpoint->take({}); !replies.empty())
      return std::move(replies.front());
    bell.wait(5);
  }
}

std::string with_body(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nLocation: http://127.0.0.1:9/\r\nConnection: close\r\n\r\n" + body;
}

TEST(HttpEndpoint, AServerOfThisMachineIsReachedPastTheProxies) {
  for (const char* name : {"http_proxy", "all_proxy"}) ::setenv(name, "http://127.0.0.1:9", 1);
  const OneReply server(with_body("200 OK", R"({"choices":[{"message":{"content":"hi"}}]})"));
  const ModelReply reply = ask(server);
  for (const char* name : {"http_proxy", "all_proxy"}) ::unsetenv(name);
  EXPECT_FALSE(reply.failure) << reply.detail;
  EXPECT_EQ(reply.text, "hi");
}

TEST(HttpEndpoint, WhatIsNoReplySaysWhy) {
  struct Row {
    std::string sent;
    std::string words;
  };
  const std::string deep = std::string(300'000, '[');
  for (const Row& row :
       {Row{with_body("302 Found", ""), "redirects are not followed"},
        Row{with_body("200 OK", ""), "status 200 and nothing else"},
        Row{with_body("200 OK", "<html>log in: sk-0123456789abcdef"), "<html>log in: [key]"},
        Row{with_body("200 OK", R"({"error":)" + deep), "not the protocol's words"}}) {
    const ModelReply reply = ask(OneReply(row.sent));
    EXPECT_EQ(reply.failure, ReplyOutcome::garbled);
    EXPECT_THAT(reply.detail, HasSubstr(row.words));
  }
}

TEST(Authorities, AreCertificatesThatAreWhole) {
  const auto folder = make_temporary_folder(std::filesystem::temp_directory_path(), "ca-").value();
  const std::string begin = "-----BEGIN CERTIFICATE-----\n", end = "\n-----END CERTIFICATE-----\n";
  const auto check = [&](const std::string& text) {
    EXPECT_TRUE(write_file(folder / "ca.pem", text).ok());
    return check_authorities((folder / "ca.pem").string()).ok();
  };
  EXPECT_TRUE(check(begin + "MIIBAAAA\nAAAAAAAA" + end));
  for (const std::string& text :
       {std::string("no certificate"), begin, begin + "MIIBAAAA", begin + "garbage!" + end,
        begin + "MIIBAAA" + end, begin + end, begin + "MIIBAAAA" + end + begin + "x" + end})
    EXPECT_FALSE(check(text)) << text;
  EXPECT_FALSE(check_authorities(folder.string()).ok());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kbeam
