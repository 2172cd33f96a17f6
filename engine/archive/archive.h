// The one SQLite file of a run. An append-only event log is the truth; tables are derived from it
// and can be rebuilt. Sources, logs and raw samples are stored by content. One writer, many readers
// (WAL, synchronous FULL). What is read is compared with its hash, so a changed byte is an error
// that names what it hit, never a wrong number. An Archive is used by one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

struct Event {
  std::int64_t sequence = 0;
  std::int64_t unix_ms = 0;
  std::string kind;  // "campaign", "idea", "candidate", "artifact", "evaluation", "decision", or
                     // the loop's own
  std::string body;  // JSON
};

// Why the loop did what it did: written for every choice, shown by report and status.
struct Decision {
  std::string
      what;  // "accepted as champion of n64", "rejected", "retired family recursive", "winner"
  std::string subject;  // candidate id, family or case
  std::string why;
};

struct AttemptRow {  // one line of attempts_log.md
  Evaluation evaluation;
  Candidate candidate;  // sources empty; source_hash per row in source_hashes
  std::vector<std::string> source_hashes;
  Idea idea;
  std::string decision;  // every decision on this candidate, oldest first, one a line
};

struct ArchiveOptions {
  const Clock* clock = nullptr;  // the system's when null; must outlive the archive
  int busy_timeout_ms = 10'000;  // how long another process's lock on the database is waited for
};

// A run that begins with all that another one has so far.
struct ForkRequest {
  std::filesystem::path parent;  // its archive; it may be running
  std::filesystem::path file;    // of the new archive
  CampaignConfig config;         // of the new run, from here on
  std::string who;
};

class Archive {
 public:
  // The file appears whole, with its first event, or not at all; so does the folder that it is in.
  static Result<std::unique_ptr<Archive>> create(const std::filesystem::path& file,
                                                 const CampaignConfig& config,
                                                 const Environment& environment,
                                                 const ArchiveOptions& options = {});
  // Likewise. The events of the parent stay as they are, ids and times and hashes; one event
  // ("fork") follows, with the new configuration and where it comes from.
  static Result<void> fork(const ForkRequest& request);
  static Result<std::unique_ptr<Archive>> open_for_append(const std::filesystem::path& file,
                                                          const ArchiveOptions& options = {});
  static Result<std::unique_ptr<Archive>> open_read_only(const std::filesystem::path& file);
  virtual ~Archive() = default;

  // Every append is durable when it returns, and leaves nothing when it fails. An idea or candidate
  // that is already there is not added again; another one under its id is an error. Events are in
  // the order of their numbers: a clock that went back is recorded as an event
  // ("clock_went_back") and changes nothing else.
  virtual Result<void> append_idea(const Idea& idea) = 0;
  virtual Result<void> append_candidate(const Candidate& candidate) = 0;
  virtual Result<void> append_artifact(const std::string& candidate_id,
                                       const Artifact& artifact) = 0;
  virtual Result<void> append_evaluation(const Evaluation& evaluation) = 0;
  virtual Result<void> append_decision(const Decision& decision) = 0;
  virtual Result<void> append_event(const std::string& kind,
                                    const Json& body) = 0;  // any kind but those above
  // Of a "model_request" the "prompt", of a "model_reply" the "text", of a "delivery" the "source"
  // is stored by content: read back, the body has "prompt_hash", "text_hash", "source_hash".

  // What `body` appends becomes durable together when this returns, or, when it or `body` fails or
  // the process is killed, not at all. Not nested.
  virtual Result<void> together(const std::function<Result<void>()>& body) = 0;

  virtual CampaignConfig config() const = 0;
  virtual Environment environment() const = 0;
  virtual Result<std::vector<Event>> events(std::int64_t after_sequence = 0) const = 0;
  virtual Result<std::vector<Idea>> ideas() const = 0;
  virtual Result<std::optional<Candidate>> find_candidate(
      const std::string& id) const = 0;                           // with sources
  virtual Result<std::vector<Candidate>> candidates() const = 0;  // with sources
  // Samples included. Summaries are as they were when the decision was made: who relies on one
  // recomputes it from the samples first (this module knows no statistics).
  virtual Result<std::vector<Evaluation>> evaluations() const = 0;
  virtual Result<std::vector<Decision>> decisions() const = 0;
  virtual Result<std::vector<AttemptRow>> attempts() const = 0;
  // The last event of `kind`, as the resumed loop and status need it.
  virtual Result<std::optional<Json>> last_event(const std::string& kind) const = 0;
  virtual Result<std::string> content(const std::string& hash) const = 0;
  virtual Result<int> count_evaluations() const = 0;
  // Of one kind alone: as quick with thousands of attempts as with ten.
  virtual Result<std::vector<Event>> events_of(const std::string& kind) const = 0;
  virtual Result<int> count_evaluations_before(std::int64_t sequence) const = 0;

  // Derives every table anew from the events; for tables that were damaged or edited.
  virtual Result<void> rebuild_tables() = 0;
  // Reads everything: the first event, blob, row of a derived table or page that is not as it was
  // written is named, and so is what is missing.
  virtual Result<void> verify() const = 0;
};

// Clears away a run folder that its process, killed at that moment, left without an archive. Says
// whether it did; a folder with anything else in it, or of a process that lives, stays.
bool remove_stillborn_run(const std::filesystem::path& run_folder);

}  // namespace kbeam
