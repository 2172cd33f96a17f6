// Messages between the conductor and a seat's process: JSON with its length in front, over a socket
// pair. Knows no meaning.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace kbeam {

class SeatChannel {
 public:
  explicit SeatChannel(int descriptor) : descriptor_(descriptor) {}  // stays the caller's
  enum class Received { message, timed_out, closed };

  // False when the other side is gone.
  bool send(const Json& message) const;
  // `timeout_s` below 0: waits for ever. Text that is no JSON counts as closed.
  Received receive(Json& message, double timeout_s) const;

 private:
  Received read_all(char* to, std::size_t bytes, double deadline) const;

  int descriptor_;
};

}  // namespace kbeam
