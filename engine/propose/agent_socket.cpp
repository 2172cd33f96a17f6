#include "propose/agent_socket.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/foreign_json.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostRequest = 4 << 20;
constexpr std::size_t kMostReply = 8 << 20;
constexpr int kRequest_ms = 10'000;       // for a whole request to arrive, or a reply to be taken
constexpr int kWorking_ms = 20 * 60'000;  // for a reply to come

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  int take() { return std::exchange(number_, -1); }

 private:
  int number_;
};

Error trouble(const std::string& attempted) {
  return {ErrorCode::io, attempted, std::strerror(errno), "is the campaign still running?"};
}

std::optional<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

bool wait_for(int descriptor, short events, const SystemClock& clock, std::int64_t until_ns) {
  for (;;) {
    const std::int64_t left_ms = (until_ns - clock.monotonic_ns()) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd watched{descriptor, events, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// A line without its end; nothing when it does not come whole in time, or is too long.
std::optional<std::string> read_line(int connection, std::size_t most, int most_ms) {
  const SystemClock clock;
  const std::int64_t until_ns = clock.monotonic_ns() + std::int64_t{most_ms} * 1'000'000;
  std::string line;
  char chunk[16384];
  while (wait_for(connection, POLLIN, clock, until_ns)) {
    const ssize_t count = ::recv(connection, chunk, sizeof chunk, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    const char* const end = static_cast<const char*>(std::memchr(chunk, '\n', count));
    line.append(chunk, end == nullptr ? count : end - chunk);
    if (line.size() > most) return std::nullopt;
    if (end != nullptr) return line;
  }
  return std::nullopt;
}

bool write_all(int connection, const std::string& text) {
  const SystemClock clock;
  const std::int64_t until_ns = clock.monotonic_ns() + std::int64_t{kRequest_ms} * 1'000'000;
  std::size_t written = 0;
  while (written < text.size()) {
    if (!wait_for(connection, POLLOUT, clock, until_ns)) return false;
    const ssize_t count = ::send(connection, text.data() + written, text.size() - written,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return true;
}

std::string request_line(const AgentRequest& request) {
  return json_text(Json{{"command", request.command},
                        {"arguments", request.arguments},
                        {"file_name", request.file_name},
                        {"source", request.source}}) +
         "\n";
}

std::optional<AgentRequest> read_request(const std::string& line) {
  const Json json = parse_foreign_json(line);
  try {
    AgentRequest request;
    json.at("command").get_to(request.command);
    for (const auto& [name, values] : json.at("arguments").items())
      values.get_to(request.arguments[name]);
    json.at("file_name").get_to(request.file_name);
    json.at("source").get_to(request.source);
    return request;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string PointLimit::take(double points) {
  const std::int64_t now_ns = clock_.monotonic_ns();
  points_ = std::min(most_, points_ + static_cast<double>(now_ns - at_ns_) * per_ns_);
  at_ns_ = now_ns;
  if (points_ >= points) {
    points_ -= points;
    return {};
  }
  return fmt::format("{:.0f} s", std::ceil((points - points_) / per_ns_ * 1e-9));
}

Result<std::unique_ptr<AgentSocket>> AgentSocket::listen(const std::filesystem::path& path,
                                                         Handle handle) {
  const auto address = address_of(path);
  if (!address)
    return Error{ErrorCode::bad_input, "listen at " + path.string(), "the path is too long",
                 "set TMPDIR to a shorter one"};
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC));
  if (socket.get() < 0 || wake.get() < 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(socket.get(), 16) != 0)
    return trouble("listen at " + path.string());
  return std::unique_ptr<AgentSocket>(
      new AgentSocket(socket.take(), wake.take(), std::move(handle)));
}

AgentSocket::AgentSocket(int socket, int wake, Handle handle)
    : socket_(socket), wake_(wake), handle_(std::move(handle)), thread_([this] { serve(); }) {}

AgentSocket::~AgentSocket() {
  closing_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(socket_);
  ::close(wake_);
}

void AgentSocket::serve() {
  while (!closing_) {
    pollfd watched[2] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (closing_ || (watched[0].revents & POLLIN) == 0) continue;
    const Descriptor connection(::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.get() >= 0) serve_one(connection.get());
  }
}

void AgentSocket::serve_one(int connection) {
  AgentReply reply;
  const auto line = read_line(connection, kMostRequest, kRequest_ms);
  const auto request = line ? read_request(*line) : std::nullopt;
  if (request)
    reply = handle_(*request, [this] { return closing_.load(); });
  else
    reply.errors = "the request was not understood: at most 4 MiB, one line of JSON\n";
  const Json json{
      {"exit_code", reply.exit_code}, {"output", reply.output}, {"errors", reply.errors}};
  write_all(connection, json_text(json) + "\n");
}

Result<AgentReply> ask_agent_socket(const std::filesystem::path& path,
                                    const AgentRequest& request) {
  const auto address = address_of(path);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!address || socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return trouble("reach the campaign at " + path.string());
  if (!write_all(socket.get(), request_line(request))) return trouble("send a request");
  const auto line = read_line(socket.get(), kMostReply, kWorking_ms);
  const Json json = parse_foreign_json(line.value_or(""));
  try {
    AgentReply reply;
    json.at("exit_code").get_to(reply.exit_code);
    json.at("output").get_to(reply.output);
    json.at("errors").get_to(reply.errors);
    return reply;
  } catch (const Json::exception&) {
    return Error{ErrorCode::unavailable, "ask the campaign", "it did not answer",
                 "the session may be over"};
  }
}

}  // namespace kbeam
