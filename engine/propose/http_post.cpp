#include "propose/http_post.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <memory>

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

int ask_cancelled(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.was_cancelled = transfer.cancelled();
  return transfer.was_cancelled ? 1 : 0;
}

HttpEnd end_of(const Transfer& transfer, CURLcode code, double took_s) {
  if (code == CURLE_OK) return HttpEnd::complete;
  if (transfer.oversize) return HttpEnd::oversize;
  if (transfer.was_cancelled) return HttpEnd::cancelled;
  if (code == CURLE_OPERATION_TIMEDOUT) {
    double connected_s = 0;
    curl_easy_getinfo(transfer.handle, CURLINFO_PRETRANSFER_TIME, &connected_s);
    if (connected_s <= 0) return HttpEnd::unreachable;
    return took_s >= transfer.request.limits.total_s ? HttpEnd::timed_out : HttpEnd::stalled;
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
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // several threads
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.limits.connect_s));
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds(request.limits.total_s));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME,
                   std::max(1L, std::lround(request.limits.stall_s)));
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, ask_cancelled);
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

  const auto began = std::chrono::steady_clock::now();
  const CURLcode code = curl_easy_perform(handle.get());
  const double took_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  transfer.outcome.end = end_of(transfer, code, took_s);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  transfer.outcome.status = static_cast<int>(status);
  if (code != CURLE_OK)
    transfer.outcome.trouble = words[0] != 0 ? words.data() : curl_easy_strerror(code);
  return std::move(transfer.outcome);
}

}  // namespace kbeam
