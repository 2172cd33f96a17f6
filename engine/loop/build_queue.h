// Builds ahead of the judge: rows go in, artifacts come out in the same order, on one thread of
// idle priority. Remembers every row that it built, so that a portfolio of known rows costs
// nothing.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "build/compiler.h"
#include "loop/activity.h"
#include "model/candidate.h"
#include "session/subject.h"

namespace kbeam {

struct BuiltCandidate {
  Candidate candidate;
  std::vector<Artifact> artifacts;    // one a row
  std::optional<Error> engine_error;  // the compiler could not work at all
  // The first row that did not build, or nothing.
  const Artifact* failed() const;
};

class BuildQueue {
 public:
  BuildQueue(Compiler& compiler, std::vector<std::string> problem_flags, ActivityMeter& meter);
  ~BuildQueue();
  BuildQueue(const BuildQueue&) = delete;
  BuildQueue& operator=(const BuildQueue&) = delete;

  void push(Candidate candidate);
  std::size_t in_flight() const;
  BuiltCandidate pop();  // waits for the oldest

  // At once, on this thread.
  BuiltCandidate build_now(const Candidate& candidate);
  // A baseline or a ceiling, which may call the libraries that it links.
  BuiltCandidate build_trusted(const Candidate& candidate, const std::vector<std::string>& link);

  // A candidate all of whose rows have been built, ready to run.
  Subject subject_of(const Candidate& candidate, const std::string& id) const;

 private:
  struct KnownRow {
    Artifact artifact;
    bool trusted = false;
  };
  BuiltCandidate build_rows(const Candidate& candidate, const std::vector<std::string>& link,
                            bool trusted);
  void work();
  std::optional<KnownRow> find_row(const Row& row) const;

  Compiler& compiler_;
  std::vector<std::string> problem_flags_;
  ActivityMeter& meter_;
  mutable std::mutex mutex_;
  std::mutex compiler_mutex_;
  std::condition_variable changed_;
  std::deque<Candidate> waiting_;
  std::deque<BuiltCandidate> done_;
  std::size_t in_flight_ = 0;
  std::map<std::string, KnownRow> known_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace kbeam
