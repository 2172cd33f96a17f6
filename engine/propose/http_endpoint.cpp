#include "propose/http_endpoint.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/files.h"

namespace kbeam {
namespace {

constexpr std::size_t kShownOfAnError = 300;
constexpr std::size_t kKeptOfAFailure = 64 * 1024;

bool is_worth_another_try(int status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

// One line, for people: an error body may be a page.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, kShownOfAnError))
    line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return line;
}

// Of a reply that is none of the protocol.
std::string why_garbled(int status, const std::string& beginning) {
  if (status >= 300 && status < 400)
    return fmt::format("status {}: redirects are not followed; name the address that it leads to",
                       status);
  if (beginning.empty()) return fmt::format("status {} and nothing else", status);
  return fmt::format("status {}, but not the protocol's words: {}", status, beginning);
}

// Every block between the marks is base64 of a DER sequence as long as certificates are: a file
// that is damaged is told from one that is none before anybody is asked.
bool holds_certificates(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  int count = 0;
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;
       at = text.find(kBegin, at)) {
    at += kBegin.size();
    const std::size_t end = text.find(kEnd, at);
    if (end == std::string_view::npos) return false;
    std::string block(text.substr(at, end - at));
    std::erase_if(block, [](unsigned char c) { return std::isspace(c) != 0; });
    const bool is_base64 = std::all_of(block.begin(), block.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '+' || c == '/' || c == '=';
    });
    if (!is_base64 || block.size() % 4 != 0 || !block.starts_with("MII")) return false;
    ++count;
  }
  return count > 0;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class HttpEndpoint final : public ModelEndpoint {
 public:
  HttpEndpoint(HttpEndpointOptions options, NewsBell& bell)
      : options_(std::move(options)), bell_(bell), rate_(options_.requests_a_minute) {
    for (int i = 0; i < std::max(1, options_.connections); ++i)
      threads_.emplace_back([this] { work(); });
  }
  ~HttpEndpoint() override {
    {
      const std::lock_guard guard(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  void send(ModelRequest request) override {
    {
      const std::lock_guard guard(mutex_);
      waiting_.push_back(std::move(request));
    }
    changed_.notify_one();
  }

  std::vector<ModelReply> take(const Moment&) override {
    const std::lock_guard guard(mutex_);
    return std::exchange(done_, {});
  }

 private:
  struct Attempt {
    HttpOutcome http;
    CollectedReply collected;
  };

  void work();
  ModelReply answer(const ModelRequest& request);
  Attempt attempt(const ModelRequest& request);
  // Adds what this attempt cost; nobody reports the cost of one that broke off.
  void count(const ModelRequest& request, const Attempt& attempt, Usage& usage) const;
  // What the attempt says of the request, unless it is worth another one.
  void conclude(const Attempt& attempt, ModelReply& reply) const;
  // False when the endpoint is closed first.
  bool sleep_for(double seconds);
  bool wait_for_turn();

  HttpEndpointOptions options_;
  NewsBell& bell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ModelRequest> waiting_;
  std::vector<ModelReply> done_;
  RateLimit rate_;
  ApiQuirks quirks_;
  std::atomic<bool> closing_{false};
  std::vector<std::thread> threads_;  // last: they use all of the above
};

void HttpEndpoint::work() {
  // A reply can wait for a measurement; a measurement must not wait for a reply.
  const sched_param lowest{};
  sched_setscheduler(0, SCHED_IDLE, &lowest);
  for (;;) {
    ModelRequest request;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (closing_) return;
      request = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const double began_s = seconds_now();
    ModelReply reply = answer(request);
    if (closing_) return;
    reply.request_id = request.id;
    reply.latency_s = seconds_now() - began_s;
    reply.text = options_.key.redact(std::move(reply.text));
    reply.detail = one_line(options_.key.redact(std::move(reply.detail)));
    {
      const std::lock_guard guard(mutex_);
      done_.push_back(std::move(reply));
    }
    bell_.ring();
  }
}

bool HttpEndpoint::sleep_for(double seconds) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                            [this] { return closing_.load(); });
}

bool HttpEndpoint::wait_for_turn() {
  for (;;) {
    double wait_s = 0;
    {
      const std::lock_guard guard(mutex_);
      wait_s = rate_.take(seconds_now());
    }
    if (wait_s <= 0) return !closing_;
    if (!sleep_for(wait_s)) return false;
  }
}

HttpEndpoint::Attempt HttpEndpoint::attempt(const ModelRequest& request) {
  ApiQuirks quirks;
  {
    const std::lock_guard guard(mutex_);
    quirks = quirks_;
  }
  const HttpRequest http{.url = options_.url,
                         .headers = request_headers(options_.api, options_.key),
                         .body = request_body(options_.api, {request.model, request.prompt,
                                                             request.most_tokens_out, quirks}),
                         .authorities = options_.authorities,
                         .limits = options_.limits,
                         .past_proxies = is_on_this_machine(options_.url)};
  const auto collector = ReplyCollector::make(options_.api);
  Attempt made;
  made.http = post(
      http, [&](std::string_view bytes) { collector->feed(bytes); },
      [this] { return closing_.load(); });
  made.collected = collector->finish();
  return made;
}

void HttpEndpoint::count(const ModelRequest& request, const Attempt& attempt, Usage& usage) const {
  const CollectedReply& reply = attempt.collected;
  if (reply.tokens_in) usage.tokens_in += *reply.tokens_in;
  if (reply.tokens_out) usage.tokens_out += *reply.tokens_out;
  if (!reply.understood) return;  // nothing was read, nothing is charged
  if (!reply.tokens_in) {
    const std::int64_t guess = estimate_tokens(request.prompt.text().size());
    usage.tokens_in += guess;
    usage.tokens_estimated += guess;
  }
  if (!reply.tokens_out) {
    const std::int64_t guess =
        std::min<std::int64_t>(estimate_tokens(reply.text.size()), request.most_tokens_out);
    usage.tokens_out += guess;
    usage.tokens_estimated += guess;
  }
}

void HttpEndpoint::conclude(const Attempt& attempt, ModelReply& reply) const {
  const HttpOutcome& http = attempt.http;
  const CollectedReply& collected = attempt.collected;
  reply.text = collected.text;
  reply.detail = http.trouble;
  if (http.status >= 400) {
    reply.failure = ReplyOutcome::http_error;
    reply.is_final = http.status == 401 || http.status == 403 || http.status == 404;
    reply.detail = fmt::format("status {}: {}", http.status, http.error_body);
  } else if (http.end == HttpEnd::oversize) {
    reply.failure = ReplyOutcome::oversize;
    reply.detail = fmt::format("more than {} bytes", options_.limits.most_bytes);
  } else if (http.end == HttpEnd::stalled || http.end == HttpEnd::timed_out) {
    reply.failure = ReplyOutcome::timed_out;
    reply.detail = http.end == HttpEnd::stalled
                       ? fmt::format("silent for {:g} s", options_.limits.stall_s)
                       : fmt::format("not done after {:g} s", options_.limits.total_s);
  } else if (http.end == HttpEnd::untrusted) {
    reply.failure = ReplyOutcome::unreachable;
    reply.is_final = true;
    reply.detail = "the server's certificate is not trusted: " + http.trouble +
                   "; name the file of the authority that signed it with --ca FILE, and the host " +
                   "as the certificate does";
  } else if (http.end == HttpEnd::unreachable) {
    reply.failure = ReplyOutcome::unreachable;
  } else if (http.end == HttpEnd::cancelled) {
    reply.failure = ReplyOutcome::cancelled;
  } else if (!collected.complaint.empty()) {
    reply.failure = ReplyOutcome::http_error;
    reply.detail = "inside the stream: " + collected.complaint;
  } else if (collected.refused) {
    reply.failure = ReplyOutcome::refused;
  } else if (collected.used_tools) {
    reply.failure = ReplyOutcome::overstepped;
    reply.detail = "it asked for a tool; it was offered none";
  } else if (!collected.understood) {
    reply.failure = http.end == HttpEnd::broken ? ReplyOutcome::unreachable : ReplyOutcome::garbled;
    if (http.end != HttpEnd::broken) reply.detail = why_garbled(http.status, collected.beginning);
  } else if (collected.at_limit || !collected.ended) {
    reply.failure = ReplyOutcome::truncated;
    reply.detail = collected.at_limit ? "at the limit on tokens" : "the stream broke off";
  } else {
    reply.detail.clear();
  }
  if (reply.failure && reply.text.size() > kKeptOfAFailure) reply.text.resize(kKeptOfAFailure);
}

ModelReply HttpEndpoint::answer(const ModelRequest& request) {
  BackOff back_off(options_.back_off, options_.seed ^ std::hash<std::string>()(request.id));
  ModelReply reply;
  for (;;) {
    if (!wait_for_turn()) return reply;
    const Attempt made = attempt(request);
    count(request, made, reply.usage);
    const HttpOutcome& http = made.http;
    bool again = is_worth_another_try(http.status);
    std::string trouble = fmt::format("{}", http.status);
    if (http.status == 400) {
      const std::lock_guard guard(mutex_);
      again = quirks_.learn_from(http.error_body);
    }
    // A reply that had begun costs tokens: whoever asked decides whether to ask again.
    if (!made.collected.understood && http.status < 400 &&
        (http.end == HttpEnd::unreachable || http.end == HttpEnd::stalled ||
         http.end == HttpEnd::broken)) {
      again = true;
      trouble = http.end == HttpEnd::stalled ? "stalled" : "no connection";
    }
    // An error that a server sends in place of a reply, with a status that is none.
    if (!made.collected.understood && made.collected.is_busy && http.status < 400) {
      again = true;
      trouble = "busy";
    }
    conclude(made, reply);
    reply.attempts = back_off.attempts();
    if (!again || closing_) return reply;
    const auto asked_s =
        parse_retry_after(http.retry_after, static_cast<std::int64_t>(std::time(nullptr)));
    const auto wait_s = back_off.next_wait_s(asked_s);
    if (!wait_s) return reply;
    reply.troubles.push_back(std::move(trouble));
    reply.failure.reset();
    if (http.status == 429 && asked_s) {
      const std::lock_guard guard(mutex_);
      rate_.hold_until(seconds_now() + *asked_s);
    }
    if (!sleep_for(*wait_s)) return reply;
  }
}

}  // namespace

Result<void> check_authorities(const std::string& file) {
  if (file.empty()) return {};
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::bad_input, "read the authorities of --ca " + file, why,
                 "name a PEM file with the certificate of the authority that signed the server's"};
  };
  const Result<std::string> text = read_file(file);
  if (!text.ok()) return refuse(text.error().happened);
  if (!holds_certificates(*text))
    return refuse("it holds no certificate in PEM form, or a damaged one");
  return {};
}

std::int64_t estimate_tokens(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes / 3 + 8);
}

std::unique_ptr<ModelEndpoint> make_http_endpoint(HttpEndpointOptions options, NewsBell& bell) {
  return std::make_unique<HttpEndpoint>(std::move(options), bell);
}

}  // namespace kbeam
