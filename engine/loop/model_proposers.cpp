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
#include "propose/recorded_agent.h"

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
  ASSIGN_OR_RETURN(auto endpoint, make_model_endpoint(setup.options, bell, seed));
  return make_llm_proposer(std::move(setup), std::move(endpoint));
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

constexpr char kReplayAgent[] = "replay_agent";

Result<Delivery> recorded_delivery(const Archive& archive, const Json& body) {
  if (!body.contains("idea"))
    return Error{ErrorCode::bad_input, "replay the submissions of an agent",
                 "the run is of a version of kbeam that did not keep them",
                 "`kbeam replay` does its decisions again"};
  Delivery delivery{.id = body.at("delivery_id").get<std::string>(),
                    .request_id = body.at("request_id").get<std::string>(),
                    .model = body.at("model").get<std::string>()};
  ASSIGN_OR_RETURN(delivery.idea, idea_from_json(body.at("idea")));
  ASSIGN_OR_RETURN(delivery.source, archive.content(body.at("source_hash").get<std::string>()));
  delivery.source_name = body.at("source_name").get<std::string>();
  return delivery;
}

Result<ReplyRecord> recorded_reply(const Archive& archive, const Json& body) {
  ReplyRecord reply{.request_id = body.at("request_id").get<std::string>(),
                    .model = body.at("model").get<std::string>(),
                    .step = body.at("step").get<std::string>(),
                    .by_connection = body.at("by_connection").get<bool>(),
                    .detail = body.at("detail").get<std::string>(),
                    .latency_s = body.at("latency_s").get<double>(),
                    .attempts = body.at("attempts").get<int>()};
  reply.outcome =
      parse_reply_outcome(body.at("outcome").get<std::string>()).value_or(ReplyOutcome::lost);
  ASSIGN_OR_RETURN(reply.text, archive.content(body.at("text_hash").get<std::string>()));
  return reply;
}

Result<std::vector<RecordedSession>> recorded_sessions(const Archive& archive,
                                                       const std::string& name) {
  std::vector<RecordedSession> sessions;
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events());
  int evaluations = 0;
  const auto session_of = [&](const Json& body) -> RecordedSession* {
    for (RecordedSession& session : sessions)
      if (session.request.id == body.at("request_id").get<std::string>()) return &session;
    return nullptr;
  };
  for (const Event& event : events) {
    if (event.kind == "observation") ++evaluations;
    if (event.kind != "model_request" && event.kind != "delivery" && event.kind != "model_reply")
      continue;
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a session of the archive"));
    if (body.at("proposer").get<std::string>() != name) continue;
    if (event.kind == "model_request") {
      RecordedSession session{.asked_at = evaluations};
      session.request = {.id = body.at("request_id").get<std::string>(),
                         .ask = body.at("ask").get<int>(),
                         .model = body.at("model").get<std::string>(),
                         .step = body.at("step").get<std::string>()};
      ASSIGN_OR_RETURN(session.request.prompt,
                       archive.content(body.at("prompt_hash").get<std::string>()));
      sessions.push_back(std::move(session));
    } else if (RecordedSession* const session = session_of(body); session == nullptr) {
      continue;  // a request that a budget did not allow
    } else if (event.kind == "delivery") {
      ASSIGN_OR_RETURN(Delivery delivery, recorded_delivery(archive, body));
      session->brought.push_back({std::move(delivery), evaluations});
    } else {
      ASSIGN_OR_RETURN(session->reply, recorded_reply(archive, body));
      session->ended_at = evaluations;
    }
  }
  return sessions;
}

}  // namespace

Result<std::unique_ptr<ModelEndpoint>> make_model_endpoint(const LlmOptions& options,
                                                           NewsBell& bell, std::uint64_t seed) {
  HttpEndpointOptions http{.api = options.api,
                           .authorities = options.authorities,
                           .limits = options.limits,
                           .back_off = options.back_off,
                           .requests_a_minute = options.requests_a_minute,
                           .connections = options.connections,
                           .seed = seed};
  ASSIGN_OR_RETURN(http.key, Secret::load({options.key_source}));
  ASSIGN_OR_RETURN(http.url, request_url(options.api, options.url, !http.key.empty()));
  RETURN_IF_ERROR(check_authorities(options.authorities));
  return make_http_endpoint(std::move(http), bell);
}

Result<std::optional<LlmOptions>> model_of_run(const Archive& archive) {
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive.last_event("proposers"));
  const Json entries = recorded ? recorded->value("settings", Json::array()) : Json::array();
  for (const Json& entry : entries) {
    if (entry.value("kind", "") != "llm" || !entry.contains("llm")) continue;
    ASSIGN_OR_RETURN(LlmOptions options, llm_options_from_json(entry["llm"]));
    return std::optional<LlmOptions>(std::move(options));
  }
  return std::optional<LlmOptions>();
}

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

Result<Json> replay_entries(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = run_folder / "archive.sqlite";
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(file));
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive->last_event("proposers"));
  const Json entries = recorded ? recorded->value("settings", Json::array()) : Json::array();
  Json replayed = Json::array();
  for (Json entry : entries) {
    const std::string kind = entry.value("kind", "");
    if (kind == "agent")
      entry = {{"kind", kReplayAgent},
               {"name", entry.value("settings", Json::object()).value("name", "")}};
    else if (kind == "llm")
      entry["kind"] = "replay";
    // What was a replay itself recorded every reply and submission anew.
    entry["archive"] = file.string();
    if (asks_model(entry) || replays_agent(entry)) replayed.push_back(std::move(entry));
  }
  if (!replayed.empty()) return replayed;
  return Error{ErrorCode::bad_input, "replay the replies of " + run_folder.string(),
               "no language model and no agent was asked there",
               "`kbeam replay` does its decisions again"};
}

bool replays_agent(const Json& entry) {
  return entry.value("kind", "") == kReplayAgent;
}

Result<std::unique_ptr<Proposer>> make_replayed_agent(const Json& entry) {
  try {
    const std::string name = entry.at("name").get<std::string>();
    ASSIGN_OR_RETURN(const auto archive,
                     Archive::open_read_only(entry.at("archive").get<std::string>()));
    ASSIGN_OR_RETURN(auto sessions, recorded_sessions(*archive, name));
    return make_recorded_agent(name, std::move(sessions));
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read the sessions of an agent", trouble.what(),
                 "the record was written by another version of kbeam"};
  }
}

}  // namespace kbeam
