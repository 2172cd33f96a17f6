#include "propose/pacing.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

namespace kbeam {

double BackOff::draw() {
  // SplitMix64: any seed will do.
  state_ += 0x9e3779b97f4a7c15;
  std::uint64_t bits = state_;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::optional<double> BackOff::next_wait_s(std::optional<double> asked_s) {
  if (attempts_ >= rule_.most_attempts) return std::nullopt;
  if (asked_s && *asked_s > rule_.longest_asked_s) return std::nullopt;
  const double full = std::min(rule_.most_s, rule_.first_s * std::pow(rule_.factor, attempts_ - 1));
  ++attempts_;
  return std::max(asked_s.value_or(0), full * (0.5 + 0.5 * draw()));
}

std::optional<double> parse_retry_after(std::string_view value, std::int64_t now_unix_s) {
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  while (!value.empty() && (value.back() <= ' ')) value.remove_suffix(1);
  double seconds = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (read.ec == std::errc() && read.ptr == value.data() + value.size())
    return seconds >= 0 && std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
  const std::time_t date = curl_getdate(std::string(value).c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max(0.0, static_cast<double>(date - now_unix_s));
}

double RateLimit::take(double now_s) {
  constexpr double kMinute = 60;
  if (now_s < held_until_s_) return held_until_s_ - now_s;
  while (!sent_s_.empty() && sent_s_.front() <= now_s - kMinute) sent_s_.pop_front();
  if (a_minute_ > 0 && static_cast<int>(sent_s_.size()) >= a_minute_)
    return sent_s_.front() + kMinute - now_s;
  sent_s_.push_back(now_s);
  return 0;
}

void RateLimit::hold_until(double time_s) {
  held_until_s_ = std::max(held_until_s_, time_s);
}

}  // namespace kbeam
