#include "propose/event_stream.h"

#include <utility>

namespace kbeam {

void EventStream::feed(std::string_view bytes) {
  for (const char c : bytes) {
    const bool second_of_pair = std::exchange(after_return_, false) && c == '\n';
    if (second_of_pair) continue;
    if (c != '\n' && c != '\r') {
      pending_ += c;
      continue;
    }
    after_return_ = c == '\r';
    line(pending_);
    pending_.clear();
  }
}

void EventStream::line(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::exchange(at_start_, false) && text.starts_with(kByteOrderMark))
    text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) {
    if (has_data_) on_event_(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = text.find(':');
  const std::string_view field = text.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_.name = value;
  } else if (field == "data") {
    if (std::exchange(has_data_, true)) event_.data += '\n';
    event_.data += value;
  }
}

}  // namespace kbeam
