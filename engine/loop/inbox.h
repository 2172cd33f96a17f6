// How other commands reach a running campaign: files in its inbox/ folder, renamed into place,
// taken once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/candidate.h"

namespace kbeam {

struct Submission {
  Idea idea;
  std::string source;
  std::string source_name;
};
Json to_json(const Submission& submission);
Result<Submission> submission_from_json(const Json& json);

// What whoever steers can say. `say` is for the proposers, the others are for the loop itself.
enum class SteeringAction { say, pause, resume, drop, protect };
std::string_view to_string(SteeringAction action);

struct SteeringMessage {
  std::string id;  // of the file: a message counts once, however often it is found
  SteeringAction action = SteeringAction::say;
  std::string text;    // of say
  std::string family;  // of drop and protect
  std::string who;
  std::int64_t asked_unix_ms = 0;
};
Json to_json(const SteeringMessage& message);
Result<SteeringMessage> steering_message_from_json(const Json& json);

// What is wrong with a submission to a campaign for `target`, all of it; empty: nothing. The inbox
// is a folder: what lies there is held to this again when it is taken.
std::string mistakes_in(const Submission& submission, const std::string& target);
// What is wrong with a source whatever a compiler says of it; empty: nothing.
std::string mistake_in_source(const std::string& source, const std::string& name,
                              const std::string& target);

class Inbox {
 public:
  explicit Inbox(std::filesystem::path run_folder) : folder_(run_folder / "inbox") {}

  Result<void> drop_stop() const;
  Result<void> drop_submission(const Submission& submission) const;
  // Gives the message its id and its time; returns the id.
  Result<std::string> drop_message(SteeringMessage message) const;

  bool stop_waits() const;
  // True once for every stop that was dropped.
  bool take_stop() const;
  // Submissions in the order of their names; each file is removed by `discard` once it is in the
  // archive.
  struct Waiting {
    std::filesystem::path file;
    Result<Submission> submission;
  };
  std::vector<Waiting> waiting() const;
  // Messages in the order in which they were dropped, likewise.
  struct WaitingMessage {
    std::filesystem::path file;
    Result<SteeringMessage> message;
  };
  std::vector<WaitingMessage> messages() const;
  void discard(const std::filesystem::path& file) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace kbeam
