// How an agent in its room talks to the campaign: one request and one reply a connection, both one
// line of JSON, over a Unix socket. Requests are bounded, served one after the other, and limited
// in their rate. Knows no command by name.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace kbeam {

struct AgentRequest {
  std::string command;
  std::map<std::string, std::vector<std::string>> arguments;
  std::string file_name;  // of `source`; empty: none
  std::string source;
};

struct AgentReply {
  int exit_code = 3;
  std::string output;  // for stdout
  std::string errors;  // for stderr
};

// Requests cost points, which come back with time.
class PointLimit {
 public:
  PointLimit(const Clock& clock, double points_per_minute, double most_points)
      : clock_(clock),
        per_ns_(points_per_minute / 60e9),
        most_(most_points),
        points_(most_points),
        at_ns_(clock.monotonic_ns()) {}

  // Empty when it may go on; else how long to wait, in words.
  std::string take(double points);

 private:
  const Clock& clock_;
  double per_ns_;
  double most_;
  double points_;
  std::int64_t at_ns_;
};

class AgentSocket {
 public:
  // On a thread of the socket's. `cancelled` is true once the socket is closing.
  using Handle = std::function<AgentReply(const AgentRequest& request,
                                          const std::function<bool()>& cancelled)>;

  static Result<std::unique_ptr<AgentSocket>> listen(const std::filesystem::path& path,
                                                     Handle handle);
  // Ends what is under way.
  ~AgentSocket();
  AgentSocket(const AgentSocket&) = delete;
  AgentSocket& operator=(const AgentSocket&) = delete;

 private:
  AgentSocket(int socket, int wake, Handle handle);
  void serve();
  void serve_one(int connection);

  int socket_;
  int wake_;  // an eventfd: the end
  Handle handle_;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

// The other side.
Result<AgentReply> ask_agent_socket(const std::filesystem::path& path, const AgentRequest& request);

}  // namespace kbeam
