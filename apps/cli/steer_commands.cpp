// kbeam steer, pause, drop, protect, fork: what can be said to a run while it runs. Each leaves a
// file in the run's inbox; the campaign writes it down before it takes effect.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "apps/cli/steering.h"
#include "archive/writer_lock.h"
#include "base/spelling.h"
#include "loop/answers.h"
#include "loop/goal.h"
#include "loop/inbox.h"
#include "loop/run_usage.h"
#include "loop/steering.h"
#include "model/json_forms.h"
#include "model/plain_text.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTextBytes = 2000;  // a sentence or two for a prompt, not a document
constexpr std::size_t kMostNameBytes = 80;
constexpr int kShownMessages = 5;

int say(const Options& options, const Json& json, const std::string& text) {
  fmt::print("{}\n", options.json() ? json_text(json) : text);
  return kDone;
}

// How the message will fare, for whoever left it.
std::string outlook(const fs::path& run) {
  return is_live(run) ? "it is heard after the attempt in hand"
                      : "nobody runs it now: it is heard once `kbeam resume " +
                            run.filename().string() + "` goes on";
}

Result<std::string> leave(const fs::path& run, SteeringMessage message) {
  message.who = speaker();
  return Inbox(run).drop_message(std::move(message));
}

int send(const Options& options, const fs::path& run, const SteeringMessage& message,
         const std::string& done) {
  const Result<std::string> id = leave(run, message);
  if (!id.ok()) return report_error(id.error(), options);
  const std::string action(to_string(message.action));
  return say(options,
             {{"run_id", run.filename().string()},
              {"message_id", *id},
              {"action", action},
              {"text", message.text},
              {"family", message.family},
              {"live", is_live(run)}},
             fmt::format("{} {}: {}", done, run.filename().string(), outlook(run)));
}

// A family that the archive knows; a submission that still waits may bring another.
Result<void> require_family(const fs::path& run, const std::string& family) {
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(run / "archive.sqlite"));
  ASSIGN_OR_RETURN(const RunFacts facts, gather_facts(*archive));
  std::vector<std::string> names = facts.families;
  for (const Inbox::Waiting& waiting : Inbox(run).waiting())
    if (waiting.submission.ok()) names.push_back(waiting.submission->idea.family);
  if (std::find(names.begin(), names.end(), family) != names.end()) return {};
  const auto close = closest_word(family, names);
  return Error{ErrorCode::bad_input, "find family '" + family + "'",
               "run " + run.filename().string() + " has no such family",
               close ? "did you mean " + *close + "?"
                     : fmt::format("its families are: {}", fmt::join(names, ", "))};
}

int send_about_family(const Options& options, SteeringAction action, const std::string& done) {
  const Result<Addressed> to = read_addressed(options, "FAMILY");
  if (!to.ok()) return report_error(to.error(), options);
  if (const Result<void> known = require_family(to->run, to->word); !known.ok())
    return report_error(known.error(), options);
  return send(options, to->run, {.action = action, .text = "", .family = to->word},
              fmt::format("asked to {} family {} in run", done, to->word));
}

Result<Json> fork_run(const Options& options) {
  ASSIGN_OR_RETURN(const fs::path parent, find_run(options));
  ForkRequest request{
      .parent = parent / "archive.sqlite", .file = {}, .config = {}, .who = speaker()};
  Used used;
  {
    ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(request.parent));
    request.config = archive->config();
    ASSIGN_OR_RETURN(const RunUsage usage, run_usage_of(*archive));
    request.config.budget = usage.limits;
    used = usage.used;
  }
  const std::string parent_id = request.config.run_id;
  request.config.run_id = make_run_id();
  if (options.has("--budget")) {
    ASSIGN_OR_RETURN(const double more_s, parse_duration(options.get("--budget"), "--budget"));
    request.config.budget.wall_s = used.used_s + more_s;
  }
  if (options.has("--evaluations")) {
    ASSIGN_OR_RETURN(request.config.budget.evaluations,
                     parse_count(options.get("--evaluations"), "--evaluations"));
  }
  if (options.has("--goal")) {
    request.config.goal = options.get("--goal");
    ASSIGN_OR_RETURN(const Home home, find_home());
    ASSIGN_OR_RETURN(const Problem problem, problem_of_run(request.config, options, home));
    if (const auto goal = Goal::parse(request.config.goal, problem); !goal.ok())
      return goal.error();
  }
  const fs::path folder = runs_folder(options) / request.config.run_id;
  request.file = folder / "archive.sqlite";
  RETURN_IF_ERROR(Archive::fork(request));
  return Json{{"run_id", request.config.run_id},
              {"forked_from", parent_id},
              {"folder", folder.string()},
              {"evaluations", used.screened}};
}

// Where it comes from, and whether anything has happened since.
Result<void> add_fork(const Archive& archive, Json& status) {
  ASSIGN_OR_RETURN(const std::vector<Event> forks, archive.events_of("fork"));
  if (forks.empty()) return {};
  ASSIGN_OR_RETURN(const Json body, parse_json(forks.back().body, "a fork event"));
  status["forked_from"] = body.value("parent_run_id", Json());
  const std::int64_t fork = forks.back().sequence;
  ASSIGN_OR_RETURN(const int before, archive.count_evaluations_before(fork));
  ASSIGN_OR_RETURN(const int now, archive.count_evaluations());
  if (now > before) return {};  // the events since then are many
  ASSIGN_OR_RETURN(const std::vector<Event> since, archive.events(fork));
  if (!since.empty()) return {};
  status["state"] = "forked";
  status["winner"] = Json();
  return {};
}

}  // namespace

std::string speaker() {
  if (const char* named = std::getenv("KBEAM_AS"); named != nullptr && *named != '\0')
    return one_line(std::string(named).substr(0, kMostNameBytes));
  const passwd* const user = ::getpwuid(::getuid());
  return user == nullptr ? fmt::format("user {}", ::getuid()) : std::string(user->pw_name);
}

Result<bool> is_dropped(const Archive& archive, const fs::path& run_folder,
                        const std::string& family) {
  SteeringState said;
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events_of("steering"));
  for (const Event& event : events) {
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a steering event"));
    ASSIGN_OR_RETURN(SteeringMessage message, steering_message_from_json(body));
    said.taken.push_back(std::move(message));
  }
  for (const Inbox::WaitingMessage& waiting : Inbox(run_folder).messages())
    if (waiting.message.ok()) said.taken.push_back(*waiting.message);
  return said.has_dropped(family);
}

bool is_live(const fs::path& run_folder) {
  return WriterLock::find_holder(run_folder / "archive.sqlite").has_value();
}

Result<Addressed> read_addressed(const Options& options, const std::string& second) {
  Options run_options = options;
  Addressed to;
  to.word = options.has(second) ? options.get(second) : options.get("RUN");
  if (!options.has(second)) run_options.values.erase("RUN");
  ASSIGN_OR_RETURN(to.run, find_run(run_options));
  return to;
}

int steer_command(const Options& options) {
  const Result<Addressed> to = read_addressed(options, "TEXT");
  if (!to.ok()) return report_error(to.error(), options);
  if (to->word.empty() || to->word.size() > kMostTextBytes)
    return report_error({ErrorCode::bad_input, "steer " + to->run.filename().string(),
                         to->word.empty() ? "the text is empty"
                                          : fmt::format("the text has {} bytes", to->word.size()),
                         fmt::format("say it in 1 to {} bytes", kMostTextBytes)},
                        options);
  return send(options, to->run, {.action = SteeringAction::say, .text = to->word, .family = ""},
              "left a word for the proposers of run");
}

int pause_command(const Options& options) {
  const Result<fs::path> run = find_run(options);
  if (!run.ok()) return report_error(run.error(), options);
  if (!is_live(*run))
    return report_error({ErrorCode::bad_input, "pause " + run->filename().string(),
                         "nobody runs it now", "there is nothing to pause"},
                        options);
  return send(options, *run, {.action = SteeringAction::pause, .text = "", .family = ""},
              "asked to pause run");
}

int drop_command(const Options& options) {
  return send_about_family(options, SteeringAction::drop, "drop");
}

int protect_command(const Options& options) {
  return send_about_family(options, SteeringAction::protect, "protect");
}

int resume_live_run(const fs::path& run_folder, const Options& options) {
  if (options.has("--budget"))
    return report_error({ErrorCode::bad_input, "resume " + run_folder.filename().string(),
                         "it is running, with the budget that it began with",
                         "leave --budget out, or `kbeam stop` it first"},
                        options);
  return send(options, run_folder, {.action = SteeringAction::resume, .text = "", .family = ""},
              "asked to go on, if it is paused, run");
}

int fork_command(const Options& options) {
  const Result<Json> forked = fork_run(options);
  if (!forked.ok()) return report_error(forked.error(), options);
  const std::string dir = options.has("--dir") ? " --dir " + options.get("--dir") : "";
  return say(
      options, *forked,
      fmt::format("forked {} after {} evaluations into {}; go on with: kbeam resume {}{}",
                  (*forked)["forked_from"].get<std::string>(), (*forked)["evaluations"].get<int>(),
                  (*forked)["run_id"].get<std::string>(), (*forked)["run_id"].get<std::string>(),
                  dir));
}

Result<void> add_steering(const Archive& archive, const fs::path& run_folder, Json& status) {
  status["steering"] = Json::array();
  status["waiting"] = Json::array();
  status["forked_from"] = Json();
  bool paused = false;
  std::set<std::string> heard;
  ASSIGN_OR_RETURN(const std::vector<Event> said, archive.events_of("steering"));
  for (const Event& event : said) {
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a steering event"));
    ASSIGN_OR_RETURN(const SteeringMessage message, steering_message_from_json(body));
    if (message.action == SteeringAction::pause) paused = true;
    if (message.action == SteeringAction::resume) paused = false;
    heard.insert(message.id);
    status["steering"].push_back(to_json(message));
  }
  for (const Inbox::WaitingMessage& waiting : Inbox(run_folder).messages())
    if (waiting.message.ok() && !heard.contains(waiting.message->id))
      status["waiting"].push_back(to_json(*waiting.message));
  status["paused"] = paused && is_live(run_folder);
  if (status["paused"].get<bool>()) status["state"] = "paused";
  return add_fork(archive, status);
}

void print_steering(const Json& status) {
  if (!status["forked_from"].is_null())
    fmt::print("  forked from {}\n", status["forked_from"].get<std::string>());
  const auto print = [](const Json& message, const char* when) {
    const std::string about =
        message["text"].get<std::string>() + message["family"].get<std::string>();
    fmt::print("  {} {}: {}{}{}\n", when, message["who"].get<std::string>(),
               message["action"].get<std::string>(), about.empty() ? "" : " ", about);
  };
  const Json& said = status["steering"];
  const std::size_t count = said.size();
  for (std::size_t i = count > kShownMessages ? count - kShownMessages : 0; i < count; ++i)
    print(said[i], "heard from");
  for (const Json& message : status["waiting"]) print(message, "waiting, from");
}

}  // namespace kbeam::cli
