// One POST over libcurl whose reply is handed on as it arrives, with limits on everything: time to
// connect, silence, the whole, bytes. Follows no redirect, because a header holds a key. The only
// place that knows libcurl beside a date parser.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

struct HttpLimits {
  double connect_s = 10;
  double stall_s = 90;  // without a byte
  double total_s = 900;
  std::int64_t most_bytes = 4 << 20;
};

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;
  std::string body;
  std::string authorities;  // a PEM file whose certificates are trusted, and no others; empty: the
                            // machine's
  HttpLimits limits;
  // A proxy of the environment would get what is meant for this machine, a key included, in the
  // open.
  bool past_proxies = false;
};

enum class HttpEnd {
  complete,
  unreachable,  // no connection, no name
  untrusted,    // a server that does not prove to be who the address says
  stalled,
  timed_out,
  oversize,
  broken,  // the connection ended in the middle
  cancelled
};

struct HttpOutcome {
  HttpEnd end = HttpEnd::unreachable;
  int status = 0;           // 0: none came
  std::string retry_after;  // the header's value
  std::string error_body;   // of a status that is an error, bounded
  std::string trouble;      // in libcurl's words; holds no header
};

// `on_bytes` gets the body of a status below 400. `cancelled` is asked several times a second.
HttpOutcome post(const HttpRequest& request, const std::function<void(std::string_view)>& on_bytes,
                 const std::function<bool()>& cancelled);

}  // namespace kbeam
