#include "propose/http_post.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

namespace kbeam {
namespace {

constexpr std::size_t kMostErrorBody = 16 * 1024;

struct Transfer {
  const HttpRequest& request;
  const std::function<void(std::string_view)>& on_bytes;
  const std::function<bool()>& cancelled;
  CURL* handle;
  HttpOutcome outcome;
  std::int64_t bytes = 0;
  bool oversize = false;
  bool was_cancelled = false;
  bool stalled = false;
  std::int64_t moved = -1;  // bytes both ways when something last moved
  std::chrono::steady_clock::time_point moved_at{};
};

std::size_t take_body(char* data, std::size_t, std::size_t size, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.bytes += static_cast<std::int64_t>(size);
  if (transfer.bytes > transfer.request.limits.most_bytes) {
    transfer.oversize = true;
    return 0;
  }
  long status = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status < 400) {
    transfer.on_bytes({data, size});
  } else {
    std::string& body = transfer.outcome.error_body;
    body.append(data, std::min(size, kMostErrorBody - std::min(kMostErrorBody, body.size())));
  }
  return size;
}

std::size_t take_header(char* data, std::size_t, std::size_t size, void* user) {
  constexpr std::string_view kRetryAfter = "retry-after:";
  const std::string_view line(data, size);
  std::string name(line.substr(0, kRetryAfter.size()));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name == kRetryAfter)
    static_cast<Transfer*>(user)->outcome.retry_after = line.substr(kRetryAfter.size());
  return size;
}

// Called about once a second and for every piece. libcurl's own limit on speed is an average over
// seconds to which the request counts: silence after a long prompt would go unseen for a while.
int watch(void* user, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const auto now = std::chrono::steady_clock::now();
  if (const std::int64_t moved = down + up; std::exchange(transfer.moved, moved) != moved)
    transfer.moved_at = now;
  transfer.stalled =
      now - transfer.moved_at > std::chrono::duration<double>(transfer.request.limits.stall_s);
  transfer.was_cancelled = transfer.cancelled();
  return transfer.stalled || transfer.was_cancelled ? 1 : 0;
}

HttpEnd end_of(const Transfer& transfer, CURLcode code) {
  if (code == CURLE_OK) return HttpEnd::complete;
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
      code == CURLE_SSL_ISSUER_ERROR)
    return HttpEnd::untrusted;
  if (transfer.oversize) return HttpEnd::oversize;
  if (transfer.was_cancelled) return HttpEnd::cancelled;
  if (transfer.stalled) return HttpEnd::stalled;
  if (code == CURLE_OPERATION_TIMEDOUT) {
    double connected_s = 0;
    curl_easy_getinfo(transfer.handle, CURLINFO_PRETRANSFER_TIME, &connected_s);
    if (connected_s <= 0) return HttpEnd::unreachable;
    return HttpEnd::timed_out;
  }
  const bool was_connected = code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR ||
                             code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING ||
                             code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM ||
                             code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL;
  return was_connected ? HttpEnd::broken : HttpEnd::unreachable;
}

long milliseconds(double seconds) {
  return std::max(1L, std::lround(seconds * 1000));
}

void set_options(Transfer& transfer, curl_slist* headers) {
  CURL* const handle = transfer.handle;
  const HttpRequest& request = transfer.request;
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  if (request.past_proxies) curl_easy_setopt(handle, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // several threads
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
  if (!request.authorities.empty()) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, request.authorities.c_str());
    curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);
  }
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.limits.connect_s));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds(request.limits.total_s));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, watch);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &transfer);
}

}  // namespace

HttpOutcome post(const HttpRequest& request, const std::function<void(std::string_view)>& on_bytes,
                 const std::function<bool()>& cancelled) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);  // once a process
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(
      ready == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (handle == nullptr) return {.trouble = "libcurl cannot start"};
  curl_slist* list = nullptr;
  for (const std::string& header : request.headers) list = curl_slist_append(list, header.c_str());
  // No "Expect: 100-continue", which some servers answer late.
  list = curl_slist_append(list, "Expect:");
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(list,
                                                                            curl_slist_free_all);
  Transfer transfer{request, on_bytes, cancelled, handle.get(), {}};
  set_options(transfer, headers.get());
  std::array<char, CURL_ERROR_SIZE> words{};
  curl_easy_setopt(handle.get(), CURLOPT_ERRORBUFFER, words.data());

  const CURLcode code = curl_easy_perform(handle.get());
  transfer.outcome.end = end_of(transfer, code);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  transfer.outcome.status = static_cast<int>(status);
  if (code != CURLE_OK)
    transfer.outcome.trouble = words[0] != 0 ? words.data() : curl_easy_strerror(code);
  return std::move(transfer.outcome);
}

}  // namespace kbeam
