// When the next request may go out: waits between retries, a limit on requests a minute, and what
// an endpoint asks for in Retry-After. Pure; time comes in as numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace kbeam {

struct BackOffRule {
  double first_s = 1;
  double factor = 2;
  double most_s = 60;
  int most_attempts = 5;         // the first one included
  double longest_asked_s = 300;  // an endpoint that asks for more is given up
};

// Waits of one request. Jitter keeps several clients from coming back together: each wait is drawn
// between half of the rule's and all of it.
class BackOff {
 public:
  BackOff(const BackOffRule& rule, std::uint64_t seed) : rule_(rule), state_(seed) {}
  // Seconds until the next attempt after one that failed; nothing: give up. `asked_s`: Retry-After,
  // which is a lower bound.
  std::optional<double> next_wait_s(std::optional<double> asked_s);
  int attempts() const { return attempts_; }

 private:
  double draw();  // in [0, 1)

  BackOffRule rule_;
  std::uint64_t state_;
  int attempts_ = 1;
};

// The value of a Retry-After header: seconds, or a date of RFC 9110 against `now_unix_s`. Nothing
// when it is neither.
std::optional<double> parse_retry_after(std::string_view value, std::int64_t now_unix_s);

// At most so many requests in any minute, whoever sends them.
class RateLimit {
 public:
  explicit RateLimit(int a_minute) : a_minute_(a_minute) {}  // 0: none
  // Seconds until one may be sent; 0 takes the place.
  double take(double now_s);
  // The endpoint wants silence until then.
  void hold_until(double time_s);

 private:
  int a_minute_;
  double held_until_s_ = 0;
  std::deque<double> sent_s_;
};

}  // namespace kbeam
