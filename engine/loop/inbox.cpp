#include "loop/inbox.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/files.h"
#include "model/json_forms.h"

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

bool Inbox::stop_waits() const {
  std::error_code trouble;
  return fs::exists(folder_ / "stop", trouble);
}

bool Inbox::take_stop() const {
  std::error_code trouble;
  return fs::remove(folder_ / "stop", trouble);
}

std::vector<Inbox::Waiting> Inbox::waiting() const {
  std::vector<fs::path> files;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(folder_, trouble))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Waiting> submissions;
  for (const fs::path& file : files) {
    const auto read = [&]() -> Result<Submission> {
      ASSIGN_OR_RETURN(const std::string text, read_file(file));
      const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      if (json.is_discarded())
        return Error{ErrorCode::bad_input, "read " + file.string(), "it is no JSON",
                     "submit it again"};
      return submission_from_json(json);
    };
    submissions.push_back({file, read()});
  }
  return submissions;
}

void Inbox::discard(const fs::path& file) const {
  std::error_code trouble;
  fs::remove(file, trouble);
}

}  // namespace kbeam
