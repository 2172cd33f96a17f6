// The two protocols in which models are asked: OpenAI-compatible chat completions and Anthropic
// messages. Makes the body of a request and reads the body of a reply, streamed or whole. Opens no
// connection.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "propose/proposer.h"
#include "propose/secret.h"

namespace kbeam {

enum class ModelApi { openai, anthropic };
std::string_view to_string(ModelApi api);

struct Turn {
  bool from_model = false;
  std::string text;
};
struct Prompt {
  std::string system;
  std::vector<Turn> turns;
  std::string text() const;  // all of it, for the record
};

// What some compatible servers do not know; learnt from their complaints.
struct ApiQuirks {
  bool no_usage_option = false;    // refuses stream_options
  bool completion_tokens = false;  // wants max_completion_tokens for max_tokens
  // True when the complaint names one that was not yet known: worth another try.
  bool learn_from(std::string_view complaint);
};

// Which API an address speaks, where nobody says so.
ModelApi guess_api(std::string_view url);
// Whether it names this machine itself, by number or as localhost.
bool is_on_this_machine(std::string_view url);
// The address to post to. An address with a user, password or key in it is an error, because it
// would be recorded; so is a key over plain HTTP to another machine.
Result<std::string> request_url(ModelApi api, const std::string& url, bool has_key);

struct BodyRequest {
  std::string model;
  const Prompt& prompt;
  int most_tokens_out = 0;
  ApiQuirks quirks;
};
std::string request_body(ModelApi api, const BodyRequest& request);
std::vector<std::string> request_headers(ModelApi api, const Secret& key);

// What a reply amounted to.
struct CollectedReply {
  std::string text;
  bool ended = false;       // the protocol said so
  bool at_limit = false;    // by the limit on tokens
  bool refused = false;     // by the model or a filter before it
  bool used_tools = false;  // asked for tools, of which it was offered none
  bool understood = false;  // something of it was in the form of the protocol
  std::string complaint;    // an error inside the stream
  std::string beginning;    // of the bytes, for whoever asks why nothing was understood
  bool is_busy = false;     // it says that the server has too much to do or broke down
  std::optional<std::int64_t> tokens_in;
  std::optional<std::int64_t> tokens_out;
};

class ReplyCollector {
 public:
  static std::unique_ptr<ReplyCollector> make(ModelApi api);
  virtual ~ReplyCollector() = default;
  virtual void feed(std::string_view bytes) = 0;
  virtual CollectedReply finish() = 0;
};

}  // namespace kbeam
