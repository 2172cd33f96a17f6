#include "target/cuda/seat_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::uint64_t kLongestMessage = 4ull << 30;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool send_all(int descriptor, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

}  // namespace

bool SeatChannel::send(const Json& message) const {
  const std::string text = json_text(message);
  const std::uint64_t length = text.size();
  return send_all(descriptor_, reinterpret_cast<const char*>(&length), sizeof(length)) &&
         send_all(descriptor_, text.data(), text.size());
}

SeatChannel::Received SeatChannel::read_all(char* to, std::size_t bytes, double deadline) const {
  while (bytes > 0) {
    int wait_ms = -1;
    if (deadline >= 0)
      wait_ms = static_cast<int>(std::clamp((deadline - now_s()) * 1000 + 1, 0.0, 1e9));
    pollfd ready{descriptor_, POLLIN, 0};
    const int count = ::poll(&ready, 1, wait_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Received::closed;
    if (count == 0) {
      if (deadline >= 0 && now_s() < deadline) continue;
      return Received::timed_out;
    }
    const ssize_t got = ::recv(descriptor_, to, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Received::closed;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return Received::message;
}

SeatChannel::Received SeatChannel::receive(Json& message, double timeout_s) const {
  const double deadline = timeout_s < 0 ? -1 : now_s() + timeout_s;
  std::uint64_t length = 0;
  if (const Received got = read_all(reinterpret_cast<char*>(&length), sizeof(length), deadline);
      got != Received::message)
    return got;
  if (length > kLongestMessage) return Received::closed;
  std::string text(length, '\0');
  if (const Received got = read_all(text.data(), text.size(), deadline); got != Received::message)
    return got;
  auto parsed = parse_json(text, "a message of a seat");
  if (!parsed.ok()) return Received::closed;
  message = std::move(parsed).value();
  return Received::message;
}

}  // namespace kbeam
