#include "propose/agent_proposer.h"

#include <fmt/core.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/private_folder.h"
#include "base/process.h"
#include "model/json_forms.h"
#include "model/plain_text.h"
#include "propose/agent_workspace.h"
#include "propose/secret.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLog = 64 << 10;
constexpr std::size_t kMostIdeaBytes = 2000;
constexpr int kMostFailures = 3;  // sessions in a row that brought nothing new
constexpr double kFirstRest_s = 10;

// What a request costs of the rate.
double points_of(const std::string& command) {
  if (command == "bench") return 10;
  if (command == "check") return 3;
  if (command == "submit" || command == "profile") return 2;
  return 1;
}

std::string value_of(const AgentRequest& request, const std::string& option) {
  const auto found = request.arguments.find(option);
  return found == request.arguments.end() || found->second.empty() ? std::string()
                                                                   : found->second.back();
}

class AgentProposer final : public Proposer {
 public:
  AgentProposer(AgentSettings settings, AgentTools tools, NewsBell& bell)
      : settings_(std::move(settings)),
        tools_(std::move(tools)),
        bell_(bell),
        limit_(*tools_.clock, settings_.points_per_minute, settings_.points_per_minute),
        granted_(granted_secrets(settings_.access)),
        thread_([this] { work(); }) {}

  ~AgentProposer() override {
    {
      const std::lock_guard guard(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::string name() const override { return settings_.name; }

  ProposerState state() const override {
    const std::lock_guard guard(mutex_);
    if (failures_ >= kMostFailures) return ProposerState::finished;
    if (waiting_ || running_) return ProposerState::working;
    return tools_.clock->monotonic_ns() < rests_until_ns_ ? ProposerState::resting
                                                          : ProposerState::ready;
  }

  void ask(const ProposalAsk& ask) override {
    const std::lock_guard guard(mutex_);
    waiting_ = ask;
    RequestRecord record;
    record.id = request_id(ask);
    record.ask = ask.number;
    record.model = settings_.command;
    record.step = "session";
    record.prompt = agent_instructions(room_request({}, ask), *ask.context);
    news_.emplace_back(std::move(record));
  }

  std::vector<ProposerNews> take_news(const Moment&) override {
    const std::lock_guard guard(mutex_);
    return std::exchange(news_, {});
  }

  void allow(const std::string&) override {
    {
      const std::lock_guard guard(mutex_);
      if (!waiting_) return;
      running_ = std::exchange(waiting_, std::nullopt);
    }
    changed_.notify_all();
  }

  void forbid(const std::string&) override {
    const std::lock_guard guard(mutex_);
    waiting_.reset();
    failures_ = kMostFailures;  // a session costs nothing that a budget could come to have again
  }

  // What became of a source stands in the next session's attempts_log.md. One that the campaign
  // has already is none: an agent that repeats itself is not asked for ever.
  void tell(const Judgement& judgement) override {
    const std::lock_guard guard(mutex_);
    if (!judgement.first || !judgement.duplicate ||
        !judgement.delivery_id.starts_with(session_id_ + "/"))
      return;
    ++known_;
    if (!running_) note_end();
  }

 private:
  std::string request_id(const ProposalAsk& ask) const {
    return fmt::format("{}#{}", settings_.name, ask.number);
  }

  WorkspaceRequest room_request(const fs::path& folder, const ProposalAsk& ask) const {
    return {.folder = folder,
            .contract_include = tools_.contract_include,
            .kind = WorkspaceKind::room,
            .role = ask.role,
            .attempts = {}};
  }

  // The thread of all sessions: made before the loop pins its own.
  void work() {
    for (;;) {
      ProposalAsk ask;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closing_ || running_.has_value(); });
        if (closing_) return;
        ask = *running_;
        delivered_ = known_ = 0;
        failures_before_ = failures_;
        session_id_ = request_id(ask);
      }
      ReplyRecord reply = run_session(ask);
      {
        const std::lock_guard guard(mutex_);
        if (reply.outcome != ReplyOutcome::cancelled) note_end();
        news_.emplace_back(std::move(reply));
        running_.reset();
      }
      bell_.ring();
    }
  }

  // Of a session, with the lock held; again when more of what it brought turns out to be known.
  void note_end() {
    const bool failed = delivered_ == known_;
    failures_ = failed ? failures_before_ + 1 : 0;
    if (failed)
      rests_until_ns_ = tools_.clock->monotonic_ns() +
                        static_cast<std::int64_t>(kFirstRest_s * 1e9) * (1 << failures_);
  }

  ReplyRecord run_session(const ProposalAsk& ask) {
    ReplyRecord reply{.request_id = request_id(ask), .model = settings_.command, .step = "session"};
    const std::int64_t began_ns = tools_.clock->monotonic_ns();
    const Result<ProcessOutcome> ended = run_in_room(ask, reply);
    reply.latency_s = static_cast<double>(tools_.clock->monotonic_ns() - began_ns) * 1e-9;
    if (!ended.ok()) {
      reply.outcome = ReplyOutcome::unreachable;
      reply.detail = ended.error().text();
      return reply;
    }
    reply.text = without_secrets(ended->output);
    const std::lock_guard guard(mutex_);
    if (closing_) {
      reply.outcome = ReplyOutcome::cancelled;
      reply.detail = "the campaign ended first";
    } else if (ended->exit_code == kTooManyProcesses) {
      reply.outcome = ReplyOutcome::overstepped;
      reply.detail = "too many processes at one time";
    } else if (delivered_ > 0) {
      reply.outcome = ReplyOutcome::delivered;
      reply.detail =
          fmt::format("{} submitted{}", delivered_,
                      ended->timed_out ? ", until the time of the session was over" : "");
    } else if (ended->timed_out) {
      reply.outcome = ReplyOutcome::timed_out;
      reply.detail = fmt::format("nothing submitted within {:.0f} s", settings_.session_s);
    } else {
      reply.outcome = ReplyOutcome::no_ideas;
      reply.detail =
          fmt::format("it ended with exit code {} and submitted nothing", ended->exit_code);
    }
    return reply;
  }

  Result<ProcessOutcome> run_in_room(const ProposalAsk& ask, const ReplyRecord& reply) {
    ASSIGN_OR_RETURN(const PrivateFolder held, PrivateFolder::make("kbeam-agent-"));
    const fs::path& folder = held.path();
    for (const char* name : {"root", "workspace"}) {
      std::error_code trouble;
      fs::create_directory(folder / name, trouble);
    }
    RETURN_IF_ERROR(write_workspace(room_request(folder / "workspace", ask), *ask.context));
    const auto handle = [&](const AgentRequest& request, const std::function<bool()>& cancelled) {
      return serve(request, cancelled, reply.request_id);
    };
    ASSIGN_OR_RETURN(const auto socket, AgentSocket::listen(folder / "socket", handle));
    ASSIGN_OR_RETURN(const AgentSandbox room,
                     AgentSandbox::prepare({.workspace = folder / "workspace",
                                            .socket = folder / "socket",
                                            .kbeam = tools_.kbeam,
                                            .root = folder / "root",
                                            .access = settings_.access}));
    return run_process({.command = {"/bin/sh", "-c", settings_.command},
                        .folder = {},
                        .environment = room.environment(),
                        .timeout_s = settings_.session_s,
                        .output_limit_bytes = kMostLog,
                        .idle_priority = true,
                        .own_processes = true,
                        .cancelled = [&] { return is_closing(); },
                        .before_exec = room.hook()});
  }

  bool is_closing() const {
    const std::lock_guard guard(mutex_);
    return closing_;
  }

  AgentReply serve(const AgentRequest& request, const std::function<bool()>& cancelled,
                   const std::string& request_id) {
    if (const std::string wait = limit_.take(points_of(request.command)); !wait.empty())
      return {3, "", "kbeam: too many requests: try again in " + wait + "\n"};
    if (request.command == "submit") return submit(request, request_id);
    return tools_.run(request, cancelled);
  }

  // What is granted through the environment may be a key, and everything below is recorded.
  static std::vector<Secret> granted_secrets(const AgentAccess& access) {
    constexpr std::size_t kLeastKey = 8;  // shorter ones are words of any text
    std::vector<Secret> secrets;
    for (const std::string& name : access.environment)
      if (const char* value = std::getenv(name.c_str());
          value != nullptr && std::strlen(value) >= kLeastKey)
        secrets.emplace_back(value);
    return secrets;
  }
  std::string without_secrets(std::string text) const {
    for (const Secret& secret : granted_) text = secret.redact(std::move(text));
    return text;
  }

  AgentReply submit(const AgentRequest& request, const std::string& request_id) {
    Delivery delivery;
    delivery.request_id = request_id;
    delivery.model = settings_.name;
    delivery.idea.text = without_secrets(value_of(request, "--idea"));
    delivery.idea.family = without_secrets(value_of(request, "--family"));
    delivery.idea.category = "agent";
    delivery.idea.source = settings_.name;
    delivery.source = without_secrets(request.source);
    delivery.source_name = without_secrets(request.file_name);
    if (delivery.idea.family.empty()) delivery.idea.family = "agent";
    const std::string& idea = delivery.idea.text;
    if (idea.empty() || idea.size() > kMostIdeaBytes || idea != one_line(idea))
      return {2, "", "kbeam: --idea is one sentence on what should be faster and why\n"};
    if (!is_plain_name(delivery.idea.family) || !is_plain_name(delivery.source_name))
      return {2, "", "kbeam: families and files have plain names: letters, digits, _ - .\n"};
    if (delivery.source.empty()) return {2, "", "kbeam: the source is empty\n"};
    if (delivery.source.find("kbeam/candidate.h") == std::string::npos)
      return {2, "", "kbeam: the file does not include <kbeam/candidate.h>: it is no candidate\n"};
    const std::string family = delivery.idea.family;
    {
      const std::lock_guard guard(mutex_);
      if (delivered_ >= settings_.submissions)
        return {1, "", "kbeam: this session has submitted as much as it may\n"};
      delivery.id = fmt::format("{}/{}", request_id, ++delivered_);
      news_.emplace_back(delivery);
    }
    bell_.ring();
    return {0,
            fmt::format("submitted as {}: it is judged in one of the next rounds; then see: kbeam "
                        "ask 'how is family {}?'\n",
                        delivery.id, family),
            ""};
  }

  AgentSettings settings_;
  AgentTools tools_;
  NewsBell& bell_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ProposerNews> news_;
  std::optional<ProposalAsk> waiting_;  // for leave to send
  std::optional<ProposalAsk> running_;
  bool closing_ = false;
  int failures_ = 0;
  int failures_before_ = 0;  // the session
  std::string session_id_;   // the latest
  std::int64_t rests_until_ns_ = 0;
  int delivered_ = 0;  // in this session
  int known_ = 0;      // of these
  PointLimit limit_;
  std::vector<Secret> granted_;
  std::thread thread_;
};

}  // namespace

Json to_json(const AgentSettings& settings) {
  return {{"name", settings.name},
          {"command", settings.command},
          {"network", settings.access.network},
          {"read", settings.access.read},
          {"write", settings.access.write},
          {"environment", settings.access.environment},
          {"session_s", settings.session_s},
          {"points_per_minute", settings.points_per_minute},
          {"submissions", settings.submissions}};
}

Result<AgentSettings> agent_settings_from_json(const Json& json) {
  try {
    AgentSettings settings;
    json.at("name").get_to(settings.name);
    json.at("command").get_to(settings.command);
    json.at("network").get_to(settings.access.network);
    json.at("read").get_to(settings.access.read);
    json.at("write").get_to(settings.access.write);
    json.at("environment").get_to(settings.access.environment);
    json.at("session_s").get_to(settings.session_s);
    json.at("points_per_minute").get_to(settings.points_per_minute);
    json.at("submissions").get_to(settings.submissions);
    return settings;
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read the settings of an agent", trouble.what(),
                 "the record was written by another version of kbeam"};
  }
}

Result<std::unique_ptr<Proposer>> make_agent_proposer(const AgentSettings& settings,
                                                      const AgentTools& tools, NewsBell& bell) {
  if (const std::string why = why_no_agent_sandbox(); !why.empty())
    return Error{ErrorCode::unavailable, "make a room for " + settings.name, why,
                 "agents are run with user, mount, process and network namespaces or not at all: "
                 "allow user namespaces on this machine, or start the agent by hand in a folder of "
                 "`kbeam setup`"};
  return std::unique_ptr<Proposer>(std::make_unique<AgentProposer>(settings, tools, bell));
}

}  // namespace kbeam
