#include "propose/model_api.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/foreign_json.h"
#include "model/json_forms.h"
#include "propose/event_stream.h"

namespace kbeam {
namespace {

// Foreign JSON: a field that is not there or not as expected is no field.
const Json& at(const Json& json, std::string_view name) {
  static const Json kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(name);
  return found == json.end() ? kNothing : *found;
}

const Json& first(const Json& json) {
  static const Json kNothing;
  return json.is_array() && !json.empty() ? json.front() : kNothing;
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::string();
}

std::optional<std::int64_t> count_of(const Json& json) {
  constexpr double kBelievable = 1e9;
  if (!json.is_number() || json.get<double>() < 0 || json.get<double>() > kBelievable)
    return std::nullopt;
  return static_cast<std::int64_t>(json.get<double>());
}

std::string complaint_of(const Json& error) {
  if (error.is_string()) return error.get<std::string>();
  const std::string message = text_of(at(error, "message"));
  return !message.empty() ? message : error.is_null() ? std::string() : json_text(error);
}

// The words of both protocols for trouble that passes.
bool says_busy(const Json& error) {
  for (const char* field : {"type", "code"}) {
    const Json& word = at(error, field);
    if (word.is_number() && (word.get<double>() == 429 || word.get<double>() >= 500)) return true;
    for (const char* busy : {"overloaded", "rate_limit", "api_error", "timeout", "server_error"})
      if (text_of(word).find(busy) != std::string::npos) return true;
  }
  return false;
}

// Streamed or whole: a body that is no event stream is one JSON object.
class JsonCollector : public ReplyCollector {
 public:
  JsonCollector()
      : stream_([this](const StreamEvent& event) {
          any_event_ = true;
          this->event(event);
        }) {}

  void feed(std::string_view bytes) override {
    constexpr std::size_t kShown = 160;
    reply_.beginning += bytes.substr(0, kShown - std::min(kShown, reply_.beginning.size()));
    stream_.feed(bytes);
    if (!any_event_) whole_ += bytes;
  }

  CollectedReply finish() override {
    if (!any_event_)
      if (const Json json = parse_foreign_json(whole_); json.is_object()) whole(json);
    return std::move(reply_);
  }

 protected:
  virtual void event(const StreamEvent& event) = 0;
  virtual void whole(const Json& json) = 0;

  void complain(const Json& error) {
    if (!reply_.complaint.empty()) return;
    reply_.complaint = complaint_of(error);
    reply_.is_busy = says_busy(error);
  }

  CollectedReply reply_;

 private:
  EventStream stream_;
  bool any_event_ = false;
  std::string whole_;
};

class OpenAiCollector final : public JsonCollector {
  void event(const StreamEvent& event) override {
    if (event.data == "[DONE]") {
      reply_.ended = reply_.understood;
      return;
    }
    const Json json = parse_foreign_json(event.data);
    if (!json.is_object()) return;
    take(json, at(first(at(json, "choices")), "delta"));
  }

  void whole(const Json& json) override {
    take(json, at(first(at(json, "choices")), "message"));
    reply_.ended = reply_.understood;
  }

  void take(const Json& json, const Json& message) {
    if (!at(json, "error").is_null()) complain(at(json, "error"));
    if (const auto tokens = count_of(at(at(json, "usage"), "prompt_tokens")))
      reply_.tokens_in = tokens;
    if (const auto tokens = count_of(at(at(json, "usage"), "completion_tokens")))
      reply_.tokens_out = tokens;
    const Json& choice = first(at(json, "choices"));
    if (!choice.is_object()) return;
    reply_.understood = true;
    reply_.text += text_of(at(message, "content"));
    if (!text_of(at(message, "refusal")).empty()) reply_.refused = true;
    if (!first(at(message, "tool_calls")).is_null() || at(message, "function_call").is_object())
      reply_.used_tools = true;
    const std::string reason = text_of(at(choice, "finish_reason"));
    if (!reason.empty()) reply_.ended = true;
    if (reason == "length") reply_.at_limit = true;
    if (reason == "content_filter") reply_.refused = true;
  }
};

class AnthropicCollector final : public JsonCollector {
  void event(const StreamEvent& event) override {
    const Json json = parse_foreign_json(event.data);
    const std::string type = text_of(at(json, "type"));
    if (type == "message_start") {
      reply_.understood = true;
      // What it says of the output here is a beginning: the count comes with message_delta, and a
      // stream that breaks off before it has none.
      take_tokens_in(at(at(json, "message"), "usage"));
    } else if (type == "content_block_start") {
      if (text_of(at(at(json, "content_block"), "type")) == "tool_use") reply_.used_tools = true;
    } else if (type == "content_block_delta") {
      if (text_of(at(at(json, "delta"), "type")) == "text_delta")
        reply_.text += text_of(at(at(json, "delta"), "text"));
    } else if (type == "message_delta") {
      take_usage(at(json, "usage"));
      take_reason(text_of(at(at(json, "delta"), "stop_reason")));
    } else if (type == "message_stop") {
      reply_.ended = reply_.understood;
    } else if (type == "error") {
      complain(at(json, "error"));
    }
  }

  void whole(const Json& json) override {
    if (text_of(at(json, "type")) == "error") return complain(at(json, "error"));
    if (!at(json, "content").is_array()) return;
    reply_.understood = true;
    for (const Json& part : at(json, "content")) {
      if (text_of(at(part, "type")) == "text") reply_.text += text_of(at(part, "text"));
      if (text_of(at(part, "type")) == "tool_use") reply_.used_tools = true;
    }
    take_usage(at(json, "usage"));
    take_reason(text_of(at(json, "stop_reason")));
    reply_.ended = true;
  }

  void take_tokens_in(const Json& usage) {
    bool any = false;
    std::int64_t sum = 0;
    for (auto& [name, count] : tokens_in_) {
      const auto tokens = count_of(at(usage, name));
      any = any || tokens;
      count = tokens.value_or(count);
      sum += count;
    }
    if (any) reply_.tokens_in = sum;
  }

  void take_usage(const Json& usage) {
    take_tokens_in(usage);
    if (const auto tokens = count_of(at(usage, "output_tokens"))) reply_.tokens_out = tokens;
  }

  void take_reason(const std::string& reason) {
    if (reason == "max_tokens") reply_.at_limit = true;
    if (reason == "refusal") reply_.refused = true;
  }

  // What a cache served was read too. Later events may say some of the counts again.
  std::map<std::string, std::int64_t> tokens_in_{
      {"input_tokens", 0}, {"cache_creation_input_tokens", 0}, {"cache_read_input_tokens", 0}};
};

// The host of a URL, without user and port; IPv6 without its brackets.
std::string_view host_of(std::string_view url) {
  const std::size_t start = url.find("://");
  if (start == std::string_view::npos) return {};
  std::string_view authority = url.substr(start + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

// A name that begins like an address, "127.example.org", is somebody's.
bool is_this_machine(std::string_view host) {
  in_addr address{};
  const bool numeric = ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
  return host == "localhost" || host == "::1" || (numeric && ntohl(address.s_addr) >> 24 == 127);
}

}  // namespace

std::string_view to_string(ModelApi api) {
  return api == ModelApi::openai ? "openai" : "anthropic";
}

std::string Prompt::text() const {
  std::string all = "[system]\n" + system + "\n";
  for (const Turn& turn : turns)
    all += (turn.from_model ? "\n[model]\n" : "\n[user]\n") + turn.text + "\n";
  return all;
}

bool ApiQuirks::learn_from(std::string_view complaint) {
  if (!no_usage_option && complaint.find("stream_options") != std::string_view::npos)
    return no_usage_option = true;
  if (!completion_tokens && complaint.find("max_completion_tokens") != std::string_view::npos)
    return completion_tokens = true;
  return false;
}

ModelApi guess_api(std::string_view url) {
  const bool anthropic = url.find("anthropic") != std::string_view::npos ||
                         url.ends_with("/messages") || url.ends_with("/messages/");
  return anthropic ? ModelApi::anthropic : ModelApi::openai;
}

bool is_on_this_machine(std::string_view url) {
  return is_this_machine(host_of(url));
}

Result<std::string> request_url(ModelApi api, const std::string& url, bool has_key) {
  const auto refuse = [&](const std::string& why, const std::string& advice) {
    // What may be a secret is not shown.
    return Error{ErrorCode::bad_input, "use the endpoint at '" + std::string(host_of(url)) + "'",
                 why, advice};
  };
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return refuse("the address begins with neither http:// nor https://",
                  "write it out, such as llm:https://host/v1");
  if (url.find_first_of("@?# \t\r\n") != std::string::npos)
    return refuse("the address holds a user, a query or a blank",
                  "give the bare address, and the key with --key env:NAME or --key file:PATH");
  if (has_key && url.starts_with("http://") && !is_this_machine(host_of(url)))
    return refuse("a key would cross the network in the open", "use https://, or no key");
  std::string base = url;
  while (base.ends_with('/')) base.pop_back();
  const std::string_view leaf = api == ModelApi::openai ? "/chat/completions" : "/messages";
  if (base.ends_with(leaf)) return base;
  // "https://host" alone means the first version of either protocol.
  const bool bare = base.find('/', base.find("://") + 3) == std::string::npos;
  return base + (bare ? "/v1" : "") + std::string(leaf);
}

std::string request_body(ModelApi api, const BodyRequest& request) {
  Json messages = Json::array();
  if (api == ModelApi::openai)
    messages.push_back({{"role", "system"}, {"content", request.prompt.system}});
  for (const Turn& turn : request.prompt.turns)
    messages.push_back({{"role", turn.from_model ? "assistant" : "user"}, {"content", turn.text}});
  Json body{{"model", request.model}, {"stream", true}};
  if (api == ModelApi::anthropic) {
    body["system"] = request.prompt.system;
    body["max_tokens"] = request.most_tokens_out;
  } else {
    body[request.quirks.completion_tokens ? "max_completion_tokens" : "max_tokens"] =
        request.most_tokens_out;
    if (!request.quirks.no_usage_option) body["stream_options"] = {{"include_usage", true}};
  }
  body["messages"] = std::move(messages);
  return json_text(body);
}

std::vector<std::string> request_headers(ModelApi api, const Secret& key) {
  std::vector<std::string> headers{"Content-Type: application/json",
                                   "Accept: text/event-stream, application/json"};
  if (api == ModelApi::anthropic) headers.emplace_back("anthropic-version: 2023-06-01");
  if (key.empty()) return headers;
  headers.push_back(api == ModelApi::anthropic ? "x-api-key: " + key.reveal()
                                               : "Authorization: Bearer " + key.reveal());
  return headers;
}

std::unique_ptr<ReplyCollector> ReplyCollector::make(ModelApi api) {
  if (api == ModelApi::anthropic) return std::make_unique<AnthropicCollector>();
  return std::make_unique<OpenAiCollector>();
}

}  // namespace kbeam
