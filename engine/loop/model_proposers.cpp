#include "loop/model_proposers.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "archive/archive.h"
#include "base/clock.h"
#include "model/json_forms.h"
#include "propose/http_endpoint.h"
#include "propose/llm_proposer.h"

namespace kbeam {
namespace {

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

Result<std::unique_ptr<Proposer>> ask_server(const Json& entry, NewsBell& bell,
                                             std::uint64_t seed) {
  LlmSetup setup{.name = entry.at("name").get<std::string>(), .clock = &system_clock()};
  ASSIGN_OR_RETURN(setup.options, llm_options_from_json(entry.at("llm")));
  const LlmOptions& options = setup.options;
  HttpEndpointOptions http{.api = options.api,
                           .limits = options.limits,
                           .back_off = options.back_off,
                           .requests_a_minute = options.requests_a_minute,
                           .connections = options.connections,
                           .seed = seed};
  ASSIGN_OR_RETURN(http.key, Secret::load({options.key_source}));
  ASSIGN_OR_RETURN(http.url, request_url(options.api, options.url, !http.key.empty()));
  return make_llm_proposer(std::move(setup), make_http_endpoint(std::move(http), bell));
}

Result<std::map<std::string, RecordedReply>> recorded_replies(const Archive& archive) {
  std::map<std::string, RecordedReply> replies;
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events());
  for (const Event& event : events) {
    if (event.kind != "model_reply") continue;
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a reply of the archive"));
    const auto outcome = parse_reply_outcome(body.at("outcome").get<std::string>());
    RecordedReply recorded{.model = body.at("model").get<std::string>(),
                           .at_evaluation = body.at("at_evaluation").get<int>(),
                           .order = static_cast<int>(replies.size())};
    ModelReply& reply = recorded.reply;
    ASSIGN_OR_RETURN(reply.text, archive.content(body.at("text_hash").get<std::string>()));
    reply.detail = body.at("detail").get<std::string>();
    reply.usage = {.tokens_in = body.at("tokens_in").get<std::int64_t>(),
                   .tokens_out = body.at("tokens_out").get<std::int64_t>(),
                   .tokens_estimated = body.at("tokens_estimated").get<std::int64_t>()};
    reply.latency_s = body.at("latency_s").get<double>();
    reply.attempts = body.at("attempts").get<int>();
    // What the text itself says is found out again; what the connection did is not in the text.
    if (!outcome || body.at("by_connection").get<bool>()) reply.failure = outcome;
    replies[body.at("request_id").get<std::string>()] = std::move(recorded);
  }
  return replies;
}

Result<std::unique_ptr<Proposer>> ask_record(const Json& entry) {
  LlmSetup setup{
      .name = entry.at("name").get<std::string>(), .clock = &system_clock(), .rests = false};
  ASSIGN_OR_RETURN(setup.options, llm_options_from_json(entry.at("llm")));
  ASSIGN_OR_RETURN(const auto archive,
                   Archive::open_read_only(entry.at("archive").get<std::string>()));
  ASSIGN_OR_RETURN(auto replies, recorded_replies(*archive));
  return make_llm_proposer(std::move(setup),
                           std::make_unique<RecordedEndpoint>(std::move(replies)));
}

}  // namespace

bool asks_model(const Json& entry) {
  const std::string kind = entry.value("kind", "");
  return kind == "llm" || kind == "replay";
}

Result<std::unique_ptr<Proposer>> make_model_proposer(const Json& entry, NewsBell& bell,
                                                      std::uint64_t seed) {
  try {
    return entry.at("kind") == "replay" ? ask_record(entry) : ask_server(entry, bell, seed);
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "set up a proposer of a run", trouble.what(),
                 "it was written by another version of kbeam"};
  }
}

Result<Json> replay_entry(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = run_folder / "archive.sqlite";
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(file));
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive->last_event("proposers"));
  const Json entries = recorded ? recorded->value("settings", Json::array()) : Json::array();
  for (Json entry : entries) {
    if (!asks_model(entry)) continue;
    entry["kind"] = "replay";
    entry["archive"] = file.string();
    return entry;
  }
  return Error{ErrorCode::bad_input, "replay the replies of " + run_folder.string(),
               "no language model was asked there", "`kbeam replay` does its decisions again"};
}

}  // namespace kbeam
