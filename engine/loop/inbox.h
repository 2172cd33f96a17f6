// How other commands reach a running campaign: files in its inbox/ folder, renamed into place,
// taken once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
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

class Inbox {
 public:
  explicit Inbox(std::filesystem::path run_folder) : folder_(run_folder / "inbox") {}

  Result<void> drop_stop() const;
  Result<void> drop_submission(const Submission& submission) const;

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
  void discard(const std::filesystem::path& file) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace kbeam
