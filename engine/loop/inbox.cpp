#include "loop/inbox.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/files.h"
#include "base/foreign_json.h"
#include "build/source_scan.h"
#include "loop/target_tools.h"
#include "model/json_forms.h"
#include "model/plain_text.h"

namespace kbeam {
namespace fs = std::filesystem;

Json to_json(const Submission& submission) {
  return {{"idea", to_json(submission.idea)},
          {"source", submission.source},
          {"source_name", submission.source_name}};
}

Result<Submission> submission_from_json(const Json& json) {
  try {
    Submission submission;
    ASSIGN_OR_RETURN(submission.idea, idea_from_json(json.at("idea")));
    submission.source = json.at("source").get<std::string>();
    submission.source_name = json.at("source_name").get<std::string>();
    return submission;
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::bad_input, "read a submission", trouble.what(), "submit it again"};
  }
}

std::string_view to_string(SteeringAction action) {
  switch (action) {
    case SteeringAction::say:
      return "say";
    case SteeringAction::pause:
      return "pause";
    case SteeringAction::resume:
      return "resume";
    case SteeringAction::drop:
      return "drop";
    case SteeringAction::protect:
      return "protect";
  }
  return "unknown";
}

Json to_json(const SteeringMessage& message) {
  return {{"id", message.id},     {"action", std::string(to_string(message.action))},
          {"text", message.text}, {"family", message.family},
          {"who", message.who},   {"asked_unix_ms", message.asked_unix_ms}};
}

Result<SteeringMessage> steering_message_from_json(const Json& json) {
  const auto refuse = [](const std::string& why) {
    return Error{ErrorCode::bad_input, "read a steering message", why, "say it again"};
  };
  try {
    SteeringMessage message;
    message.id = json.at("id").get<std::string>();
    message.text = one_line(json.at("text").get<std::string>());
    message.family = json.at("family").get<std::string>();
    message.who = one_line(json.at("who").get<std::string>());
    message.asked_unix_ms = json.at("asked_unix_ms").get<std::int64_t>();
    const std::string word = json.at("action").get<std::string>();
    for (const SteeringAction action :
         {SteeringAction::say, SteeringAction::pause, SteeringAction::resume, SteeringAction::drop,
          SteeringAction::protect}) {
      if (word != to_string(action)) continue;
      message.action = action;
      return message;
    }
    return refuse("there is no action '" + word + "'");
  } catch (const Json::exception& trouble) {
    return refuse(trouble.what());
  }
}

std::string mistake_in_source(const std::string& source, const std::string& name,
                              const std::string& target) {
  constexpr std::size_t kMostSourceBytes = 512 * 1024;
  constexpr std::size_t kMostNameBytes = 80;
  if (source.empty()) return "the source is empty";
  if (source.size() > kMostSourceBytes)
    return fmt::format("the source has {} bytes, more than {}", source.size(), kMostSourceBytes);
  if (name.size() > kMostNameBytes || name.find('/') != std::string::npos || name != one_line(name))
    return "the source has no plain file name";
  if (target_of_file(name) != target) return name + " is not for target " + target;
  const SourceKnobs scanned = scan_knobs(source);
  return scanned.mistakes.empty() ? std::string() : scanned.mistakes.front();
}

std::string mistakes_in(const Submission& submission, const std::string& target) {
  constexpr std::size_t kMostIdeaBytes = 2000;
  std::string mistakes;
  const auto add = [&](const std::string& one) {
    mistakes += (mistakes.empty() ? "" : "; ") + one;
  };
  const std::string& text = submission.idea.text;
  if (text.empty() || text.size() > kMostIdeaBytes || text != one_line(text))
    add(fmt::format("its idea is no line of 1 to {} bytes", kMostIdeaBytes));
  if (!is_plain_name(submission.idea.family))
    add("its family has no plain name: up to 64 letters, digits, _ - .");
  if (const std::string mistake =
          mistake_in_source(submission.source, submission.source_name, target);
      !mistake.empty())
    add(mistake);
  else if (submission.source.find("kbeam/candidate.h") == std::string::npos)
    add("the file does not include <kbeam/candidate.h>: it is no candidate");
  return mistakes;
}

namespace {

constexpr std::string_view kMessagePrefix = "steer-";

enum class Content { submissions, messages };

// In the order of their names, which begin with their times.
std::vector<fs::path> files_in(const fs::path& folder, Content content) {
  std::vector<fs::path> files;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(folder, trouble))
    if (entry.path().extension() == ".json" &&
        entry.path().filename().string().starts_with(kMessagePrefix) ==
            (content == Content::messages))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Result<Json> read_json_file(const fs::path& file) {
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  Json json = parse_foreign_json(text);
  if (json.is_discarded())
    return Error{ErrorCode::bad_input, "read " + file.string(), "it is no JSON", "submit it again"};
  return json;
}

}  // namespace

Result<void> Inbox::drop_stop() const {
  std::error_code trouble;
  fs::create_directories(folder_, trouble);
  return write_file(folder_ / "stop", "");
}

Result<void> Inbox::drop_submission(const Submission& submission) const {
  std::error_code trouble;
  fs::create_directories(folder_, trouble);
  const std::string name =
      fmt::format("submit-{:014}-{}.json", SystemClock().unix_ms(), random_letters(4));
  return write_file(folder_ / name, json_text(to_json(submission)));
}

Result<std::string> Inbox::drop_message(SteeringMessage message) const {
  std::error_code trouble;
  fs::create_directories(folder_, trouble);
  message.asked_unix_ms = SystemClock().unix_ms();
  message.id = fmt::format("{}{:014}-{}", kMessagePrefix, message.asked_unix_ms, random_letters(6));
  RETURN_IF_ERROR(write_file(folder_ / (message.id + ".json"), json_text(to_json(message))));
  return message.id;
}

bool Inbox::stop_waits() const {
  std::error_code trouble;
  return fs::exists(folder_ / "stop", trouble);
}

bool Inbox::take_stop() const {
  std::error_code trouble;
  return fs::remove(folder_ / "stop", trouble);
}

std::vector<Inbox::Waiting> Inbox::waiting() const {
  std::vector<Waiting> submissions;
  for (const fs::path& file : files_in(folder_, Content::submissions)) {
    const auto read = [&]() -> Result<Submission> {
      ASSIGN_OR_RETURN(const Json json, read_json_file(file));
      return submission_from_json(json);
    };
    submissions.push_back({file, read()});
  }
  return submissions;
}

std::vector<Inbox::WaitingMessage> Inbox::messages() const {
  std::vector<WaitingMessage> messages;
  for (const fs::path& file : files_in(folder_, Content::messages)) {
    const auto read = [&]() -> Result<SteeringMessage> {
      ASSIGN_OR_RETURN(const Json json, read_json_file(file));
      return steering_message_from_json(json);
    };
    messages.push_back({file, read()});
  }
  return messages;
}

void Inbox::discard(const fs::path& file) const {
  std::error_code trouble;
  fs::remove(file, trouble);
}

}  // namespace kbeam
