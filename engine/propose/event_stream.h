// Server-sent events (text/event-stream) from the bytes of a reply as they arrive. Knows nothing of
// what the events say.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kbeam {

struct StreamEvent {
  std::string name;  // of an "event:" line; empty: none
  std::string data;  // its "data:" lines, joined by newlines
};

class EventStream {
 public:
  explicit EventStream(std::function<void(const StreamEvent&)> on_event)
      : on_event_(std::move(on_event)) {}
  // Lines end with \n, \r\n or \r, wherever the pieces are cut. An event without data is none.
  void feed(std::string_view bytes);

 private:
  void line(std::string_view text);

  std::function<void(const StreamEvent&)> on_event_;
  std::string pending_;  // a line that has not ended
  bool after_return_ = false;
  bool at_start_ = true;
  bool has_data_ = false;
  StreamEvent event_;
};

}  // namespace kbeam
