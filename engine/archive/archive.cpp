#include "archive/archive.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "archive/database.h"
#include "archive/derived_tables.h"
#include "archive/schema.h"
#include "archive/stored_forms.h"
#include "archive/table_check.h"
#include "archive/writer_lock.h"
#include "base/clock.h"
#include "base/hash.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::array<std::string_view, 8> kTypedKinds{"campaign",  "fork",           "idea",
                                                      "candidate", "artifact",       "evaluation",
                                                      "decision",  "clock_went_back"};

// Adjustments of a clock that is kept in step with others are smaller.
constexpr std::int64_t kClockStepMs = 1000;

// Events with the hash of the event before each, so that any subset can be verified.
constexpr std::string_view kSelectEvents =
    "SELECT e.sequence, e.unix_ms, e.kind, e.body, e.hash, IFNULL(p.hash, '') FROM events e "
    "LEFT JOIN events p ON p.sequence = e.sequence - 1 ";

std::string chained_hash(const std::string& previous, const Event& event) {
  return Hasher()
      .field(previous)
      .field(event.sequence)
      .field(event.unix_ms)
      .field(event.kind)
      .field(event.body)
      .hex();
}

// Ids are hashes of what a noun does. A candidate that comes again by another way (another
// proposer, another file name) is the one that is known, and the first record of it stays.
bool same_content(const Json& known, const Json& again) {
  if (!known.contains("rows") || !again.contains("rows")) return known == again;
  Json rows = known["rows"], other = again["rows"];
  for (Json* list : {&rows, &other})
    for (Json& row : *list) row.erase("source_name");
  return rows == other;
}

Json decision_body(const Decision& decision) {
  return {{"what", decision.what}, {"subject", decision.subject}, {"why", decision.why}};
}

class SqliteArchive final : public Archive {
 public:
  SqliteArchive(Database database, std::optional<WriterLock> lock, const Clock* clock)
      : lock_(std::move(lock)),
        database_(std::move(database)),
        clock_(clock == nullptr ? system_clock_ : *clock) {}

  // An archive at rest is one file, and reading it leaves nothing beside it. Where a reader is at
  // work just now it stays as it is, which is as good.
  ~SqliteArchive() override {
    if (lock_)
      static_cast<void>(database_.execute("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE"));
  }
  SqliteArchive(const SqliteArchive&) = delete;
  SqliteArchive& operator=(const SqliteArchive&) = delete;

  Result<void> start(const CampaignConfig& config, const Environment& environment) {
    config_ = config;
    environment_ = environment;
    return append("campaign",
                  {Json{{"config", to_json(config)}, {"environment", to_json(environment)}}, {}});
  }

  Result<void> load() {
    ASSIGN_OR_RETURN(const std::optional<Json> campaign, last_event("campaign"));
    if (!campaign)
      return Error{ErrorCode::corrupt, "open archive " + path(), "it holds no campaign",
                   "the run was killed before it began; start it again in another folder"};
    ASSIGN_OR_RETURN(config_, campaign_config_from_json(campaign->value("config", Json())));
    ASSIGN_OR_RETURN(environment_, environment_from_json(campaign->value("environment", Json())));
    ASSIGN_OR_RETURN(const std::optional<Json> fork, last_event("fork"));
    if (!fork) return {};
    ASSIGN_OR_RETURN(config_, campaign_config_from_json(fork->value("config", Json())));
    return {};
  }

  // In a copy of the parent's archive.
  Result<void> start_fork(const ForkRequest& request) {
    RETURN_IF_ERROR(load());
    ASSIGN_OR_RETURN(const Tip tip, find_tip());
    return append("fork", {Json{{"parent_run_id", config_.run_id},
                                {"parent_folder", request.parent.parent_path().string()},
                                {"parent_events", tip.sequence},
                                {"parent_hash", tip.hash},
                                {"who", request.who},
                                {"config", to_json(request.config)}},
                           {}});
  }

  Result<void> append_idea(const Idea& idea) override {
    return append_once("ideas", idea.id, "idea", {to_json(idea), {}});
  }
  Result<void> append_candidate(const Candidate& candidate) override {
    return append_once("candidates", candidate.id, "candidate", store_candidate(candidate));
  }
  Result<void> append_artifact(const std::string& candidate_id, const Artifact& artifact) override {
    return append("artifact", store_artifact(candidate_id, artifact));
  }
  Result<void> append_evaluation(const Evaluation& evaluation) override {
    return append("evaluation", store_evaluation(make_evaluation(evaluation)));
  }
  Result<void> append_decision(const Decision& decision) override {
    return append("decision", {decision_body(decision), {}});
  }
  Result<void> append_event(const std::string& kind, const Json& body) override {
    CHECK(std::ranges::find(kTypedKinds, kind) == kTypedKinds.end(),
          "this kind of event has an append function of its own");
    return append(kind, store_event(kind, body));
  }

  Result<void> together(const std::function<Result<void>()>& body) override {
    CHECK(lock_.has_value(), "a read-only archive is not appended to");
    CHECK(!in_together_, "appends are put together once, not nested");
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
    in_together_ = true;
    const Result<void> done = body();
    in_together_ = false;
    RETURN_IF_ERROR(done);
    Result<void> committed = transaction.commit();
    if (committed.ok()) return committed;
    Error error = committed.error();
    error.attempted = "record in archive " + path();
    return error;
  }

  WriterLock give_back_lock() { return std::move(*lock_); }

  CampaignConfig config() const override { return config_; }
  Environment environment() const override { return environment_; }

  Result<std::vector<Event>> events(std::int64_t after_sequence) const override {
    ASSIGN_OR_RETURN(
        Statement select,
        database_.prepare(std::string(kSelectEvents) + "WHERE e.sequence > ? ORDER BY e.sequence"));
    select.bind(after_sequence);
    return read_events(select);
  }

  Result<std::vector<Idea>> ideas() const override {
    return read_all<Idea>("idea", [](Json body) { return idea_from_json(body); });
  }

  Result<std::optional<Candidate>> find_candidate(const std::string& id) const override {
    ASSIGN_OR_RETURN(const std::optional<Event> event, event_behind("candidates", id));
    if (!event) return std::optional<Candidate>();
    ASSIGN_OR_RETURN(Json body, parse_event(*event));
    ASSIGN_OR_RETURN(Candidate candidate, restore_candidate(std::move(body), fetcher()));
    return std::optional<Candidate>(std::move(candidate));
  }

  Result<std::vector<Candidate>> candidates() const override {
    return read_all<Candidate>(
        "candidate", [&](Json body) { return restore_candidate(std::move(body), fetcher()); });
  }

  Result<std::vector<Evaluation>> evaluations() const override {
    return read_all<Evaluation>(
        "evaluation", [&](Json body) { return restore_evaluation(std::move(body), fetcher()); });
  }

  Result<std::vector<Decision>> decisions() const override {
    return read_all<Decision>("decision", [](const Json& body) -> Result<Decision> {
      return Decision{body.value("what", ""), body.value("subject", ""), body.value("why", "")};
    });
  }

  Result<std::vector<AttemptRow>> attempts() const override;

  Result<std::optional<Json>> last_event(const std::string& kind) const override {
    ASSIGN_OR_RETURN(Statement select,
                     database_.prepare(std::string(kSelectEvents) +
                                       "WHERE e.kind = ? ORDER BY e.sequence DESC LIMIT 1"));
    select.bind(kind);
    ASSIGN_OR_RETURN(const std::vector<Event> found, read_events(select));
    if (found.empty()) return std::optional<Json>();
    ASSIGN_OR_RETURN(Json body, parse_event(found.front()));
    return std::optional<Json>(std::move(body));
  }

  Result<std::string> content(const std::string& hash) const override { return fetch_blob(hash); }

  Result<int> count_evaluations() const override {
    ASSIGN_OR_RETURN(const std::int64_t count,
                     database_.number("SELECT COUNT(*) FROM evaluations"));
    return static_cast<int>(count);
  }

  Result<int> count_evaluations_before(std::int64_t sequence) const override {
    ASSIGN_OR_RETURN(Statement select,
                     database_.prepare("SELECT COUNT(*) FROM evaluations WHERE sequence < ?"));
    select.bind(sequence);
    ASSIGN_OR_RETURN(const bool row, select.step());
    return row ? static_cast<int>(select.integer(0)) : 0;
  }

  Result<std::vector<Event>> events_of(const std::string& kind) const override {
    ASSIGN_OR_RETURN(Statement select, database_.prepare(std::string(kSelectEvents) +
                                                         "WHERE e.kind = ? ORDER BY e.sequence"));
    select.bind(kind);
    return read_events(select);
  }

  Result<void> rebuild_tables() override {
    CHECK(lock_.has_value(), "a read-only archive is not rebuilt");
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
    ASSIGN_OR_RETURN(const std::vector<Event> all, events(0));
    RETURN_IF_ERROR(clear_derived_tables(database_));
    for (const Event& event : all) {
      ASSIGN_OR_RETURN(const Json body, parse_event(event));
      RETURN_IF_ERROR(derive_rows(database_, event, body));
    }
    return transaction.commit();
  }

  Result<void> verify() const override {
    ASSIGN_OR_RETURN(const std::vector<Event> all, events(0));
    std::set<std::string> present;
    ASSIGN_OR_RETURN(Statement blobs, database_.prepare("SELECT hash, bytes FROM blobs"));
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, blobs.step());
      if (!row) break;
      RETURN_IF_ERROR(verify_blob(blobs.text(0), blobs.blob(1)));
      present.insert(blobs.text(0));
    }
    for (const Event& event : all) {
      ASSIGN_OR_RETURN(const Json body, parse_event(event));
      for (const std::string& hash : named_blobs(event.kind, body))
        if (!present.contains(hash))
          return damaged("blob " + hash + ", which event " + std::to_string(event.sequence) + " (" +
                         event.kind + ") names, is missing: the archive");
    }
    return verify_tables(database_, all);
  }

 private:
  std::string path() const { return database_.file().string(); }

  Error damaged(const std::string& what) const {
    return {ErrorCode::corrupt, "read archive " + path(), what + " is not as it was written",
            "the file was changed or the disk is failing: restore it from a copy"};
  }

  Result<void> verify_blob(const std::string& hash, const std::string& bytes) const {
    if (sha256_hex(bytes) != hash) return damaged("blob " + hash);
    return {};
  }

  FetchBlob fetcher() const {
    return [this](const std::string& hash) { return fetch_blob(hash); };
  }

  Result<std::string> fetch_blob(const std::string& hash) const {
    ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT bytes FROM blobs WHERE hash = ?"));
    select.bind(hash);
    ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return damaged("blob " + hash + " is missing, so the record that names it");
    std::string bytes = select.blob(0);
    RETURN_IF_ERROR(verify_blob(hash, bytes));
    return bytes;
  }

  Result<std::vector<Event>> read_events(Statement& select) const {
    std::vector<Event> found;
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return found;
      Event event{select.integer(0), select.integer(1), select.text(2), select.text(3)};
      if (chained_hash(select.text(5), event) != select.text(4))
        return damaged("event " + std::to_string(event.sequence) + " (" + event.kind +
                       "), or the event before it,");
      found.push_back(std::move(event));
    }
  }

  Result<Json> parse_event(const Event& event) const {
    return parse_json(event.body, "event " + std::to_string(event.sequence) + " of " + path());
  }

  template <typename Noun, typename Restore>
  Result<std::vector<Noun>> read_all(const std::string& kind, const Restore& restore) const {
    ASSIGN_OR_RETURN(const std::vector<Event> found, events_of(kind));
    std::vector<Noun> nouns;
    for (const Event& event : found) {
      ASSIGN_OR_RETURN(Json body, parse_event(event));
      ASSIGN_OR_RETURN(nouns.emplace_back(), restore(std::move(body)));
    }
    return nouns;
  }

  // The event that made the row `id` of a derived table.
  Result<std::optional<Event>> event_behind(const std::string& table, const std::string& id) const {
    ASSIGN_OR_RETURN(Statement select,
                     database_.prepare(std::string(kSelectEvents) + "JOIN " + table +
                                       " t ON t.sequence = e.sequence WHERE t.id = ?"));
    select.bind(id);
    ASSIGN_OR_RETURN(std::vector<Event> found, read_events(select));
    if (found.empty()) return std::optional<Event>();
    return std::optional<Event>(std::move(found.front()));
  }

  Result<void> append_once(const std::string& table, const std::string& id, const std::string& kind,
                           const Stored& stored) {
    ASSIGN_OR_RETURN(const std::optional<Event> known, event_behind(table, id));
    if (!known) return append(kind, stored);
    ASSIGN_OR_RETURN(const Json body, parse_event(*known));
    if (same_content(body, stored.body)) return {};
    return Error{ErrorCode::bad_input, "record " + kind + " " + id + " in archive " + path(),
                 "another " + kind + " has that id", "derive ids from content"};
  }

  struct Tip {  // of the event log
    std::int64_t sequence = 0;
    std::int64_t unix_ms = 0;
    std::string hash;
  };
  Result<Tip> find_tip() const {
    ASSIGN_OR_RETURN(
        Statement last,
        database_.prepare(
            "SELECT sequence, unix_ms, hash FROM events ORDER BY sequence DESC LIMIT 1"));
    ASSIGN_OR_RETURN(const bool any, last.step());
    return any ? Tip{last.integer(0), last.integer(1), last.text(2)} : Tip{};
  }

  // The one place that writes: content, event and rows become visible and durable together or not
  // at all.
  Result<void> append(const std::string& kind, const Stored& stored) {
    CHECK(lock_.has_value(), "a read-only archive is not appended to");
    Result<void> done = write(kind, stored);
    if (done.ok()) return done;
    Error error = done.error();
    error.attempted = "record " + kind + " in archive " + path();
    return error;
  }

  Result<void> write(const std::string& kind, const Stored& stored) {
    if (in_together_) return write_rows(kind, stored);
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
    RETURN_IF_ERROR(write_rows(kind, stored));
    return transaction.commit();
  }

  Result<void> write_rows(const std::string& kind, const Stored& stored) {
    for (const Blob& blob : stored.blobs) {
      ASSIGN_OR_RETURN(Statement insert,
                       database_.prepare("INSERT OR IGNORE INTO blobs VALUES (?, ?)"));
      RETURN_IF_ERROR(insert.bind(blob.hash).bind_blob(blob.bytes).run());
    }
    ASSIGN_OR_RETURN(Tip tip, find_tip());
    const std::int64_t now_ms = clock_.unix_ms();
    if (now_ms < tip.unix_ms - kClockStepMs) {
      const Json jump{{"from_unix_ms", tip.unix_ms}, {"to_unix_ms", now_ms}};
      ASSIGN_OR_RETURN(
          tip, write_event(tip, {tip.sequence + 1, now_ms, "clock_went_back", json_text(jump)}));
    }
    ASSIGN_OR_RETURN(tip,
                     write_event(tip, {tip.sequence + 1, now_ms, kind, json_text(stored.body)}));
    return {};
  }

  Result<Tip> write_event(const Tip& tip, const Event& event) {
    const std::string hash = chained_hash(tip.hash, event);
    ASSIGN_OR_RETURN(Statement insert,
                     database_.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?)"));
    insert.bind(event.sequence).bind(event.unix_ms).bind(event.kind).bind(event.body).bind(hash);
    RETURN_IF_ERROR(insert.run());
    // From the text as stored, so that a rebuild gives the same rows.
    ASSIGN_OR_RETURN(const Json body, parse_event(event));
    RETURN_IF_ERROR(derive_rows(database_, event, body));
    return Tip{event.sequence, event.unix_ms, hash};
  }

  // Destroyed after the database: the lock is held until the last byte is written.
  std::optional<WriterLock> lock_;
  Database database_;
  SystemClock system_clock_;
  const Clock& clock_;
  bool in_together_ = false;
  CampaignConfig config_;
  Environment environment_;
};

Result<std::vector<AttemptRow>> SqliteArchive::attempts() const {
  std::map<std::string, std::pair<Candidate, std::vector<std::string>>> by_id;
  ASSIGN_OR_RETURN(const std::vector<Event> candidate_events, events_of("candidate"));
  for (const Event& event : candidate_events) {
    ASSIGN_OR_RETURN(Json body, parse_event(event));
    std::vector<std::string> hashes = source_hashes(body);
    const FetchBlob without_source = [](const std::string&) { return std::string(); };
    ASSIGN_OR_RETURN(Candidate candidate, restore_candidate(std::move(body), without_source));
    const std::string id = candidate.id;
    by_id[id] = {std::move(candidate), std::move(hashes)};
  }
  std::map<std::string, Idea> idea_by_id;
  ASSIGN_OR_RETURN(const std::vector<Idea> every_idea, ideas());
  for (const Idea& idea : every_idea) idea_by_id[idea.id] = idea;
  std::map<std::string, std::string> decision_by_id;
  ASSIGN_OR_RETURN(const std::vector<Decision> every_decision, decisions());
  for (const Decision& decision : every_decision) {
    std::string& lines = decision_by_id[decision.subject];
    if (!lines.empty()) lines += '\n';
    lines += decision.what + ": " + decision.why;
  }
  ASSIGN_OR_RETURN(std::vector<Evaluation> every_evaluation, evaluations());
  std::vector<AttemptRow> rows;
  for (Evaluation& evaluation : every_evaluation) {
    AttemptRow& row = rows.emplace_back();
    row.evaluation = std::move(evaluation);
    const std::string& id = row.evaluation.candidate_id;
    if (const auto found = by_id.find(id); found != by_id.end())
      std::tie(row.candidate, row.source_hashes) = found->second;
    row.idea = idea_by_id[row.candidate.idea_id];
    row.decision = decision_by_id[id];
  }
  return rows;
}

std::filesystem::path archive_draft(const std::filesystem::path& file) {
  return file.string() + ".draft";
}

// Foreign and newer files are refused before anything in them changes.
Result<void> prepare_for_writing(Database& database) {
  RETURN_IF_ERROR(migrate(database));
  return database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
}

// A whole archive with its first event, in a file that nobody reads yet.
Result<WriterLock> write_draft(const std::filesystem::path& draft, const CampaignConfig& config,
                               const Environment& environment, const ArchiveOptions& options,
                               WriterLock lock) {
  ASSIGN_OR_RETURN(Database database,
                   Database::open(draft, OpenMode::create, options.busy_timeout_ms));
  RETURN_IF_ERROR(migrate(database));
  SqliteArchive archive(std::move(database), std::move(lock), options.clock);
  RETURN_IF_ERROR(archive.start(config, environment));
  return archive.give_back_lock();
}

// All of another archive at one moment, and what makes it a run of its own.
Result<WriterLock> write_fork_draft(const std::filesystem::path& draft, const ForkRequest& request,
                                    WriterLock lock) {
  {
    ASSIGN_OR_RETURN(const Database parent, Database::open(request.parent, OpenMode::read_only));
    RETURN_IF_ERROR(require_current_schema(parent));
    ASSIGN_OR_RETURN(Statement copy, parent.prepare("VACUUM INTO ?"));
    RETURN_IF_ERROR(copy.bind(draft.string()).run());
  }
  ASSIGN_OR_RETURN(Database database, Database::open(draft, OpenMode::append));
  RETURN_IF_ERROR(database.execute("PRAGMA synchronous = FULL"));
  SqliteArchive archive(std::move(database), std::move(lock), nullptr);
  RETURN_IF_ERROR(archive.start_fork(request));
  return archive.give_back_lock();
}

void remove_draft(const std::filesystem::path& draft) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    std::filesystem::remove(draft.string() + suffix, ignored);
}

// The lock of a run that is about to begin, in a folder that is made for it. A folder without an
// archive may be cleared away by others until the lock is taken.
Result<WriterLock> take_in_new_folder(const std::filesystem::path& file) {
  constexpr int kAttempts = 5;
  for (int attempt = 1;; ++attempt) {
    std::error_code trouble;
    std::filesystem::create_directories(file.parent_path(), trouble);
    if (trouble)
      return Error{ErrorCode::io, "make the run folder " + file.parent_path().string(),
                   trouble.message(), "check free space and permissions, or choose another --dir"};
    Result<WriterLock> lock = WriterLock::take(file);
    if (lock.ok() || attempt >= kAttempts || std::filesystem::exists(file.parent_path()))
      return lock;
  }
}

Result<void> rename_into_place(const std::filesystem::path& draft,
                               const std::filesystem::path& file) {
  std::error_code trouble;
  std::filesystem::rename(draft, file, trouble);
  const int folder = trouble ? -1 : ::open(file.parent_path().c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = folder >= 0 && ::fsync(folder) == 0;
  const std::string happened = trouble ? trouble.message() : std::strerror(errno);
  if (folder >= 0) ::close(folder);
  if (synced) return {};
  return Error{ErrorCode::io, "create archive " + file.string(), happened,
               "check free space and permissions of " + file.parent_path().string()};
}

Result<std::unique_ptr<Archive>> open_locked(const std::filesystem::path& file,
                                             const ArchiveOptions& options, WriterLock lock) {
  ASSIGN_OR_RETURN(Database database,
                   Database::open(file, OpenMode::append, options.busy_timeout_ms));
  RETURN_IF_ERROR(prepare_for_writing(database));
  auto archive =
      std::make_unique<SqliteArchive>(std::move(database), std::move(lock), options.clock);
  RETURN_IF_ERROR(archive->load());
  return std::unique_ptr<Archive>(std::move(archive));
}

// `write` makes a draft, which is renamed into place: whole or not at all.
Result<std::unique_ptr<Archive>> begin_archive(
    const std::filesystem::path& file,
    const std::function<Result<WriterLock>(const std::filesystem::path&, WriterLock)>& write,
    const std::function<Result<std::unique_ptr<Archive>>(WriterLock)>& open) {
  std::error_code trouble;
  const auto begin = [&]() -> Result<std::unique_ptr<Archive>> {
    ASSIGN_OR_RETURN(WriterLock taken, take_in_new_folder(file));
    if (std::filesystem::exists(file, trouble))
      return Error{ErrorCode::bad_input, "create archive " + file.string(),
                   "the file is already there", "resume that run, or choose another --dir"};
    const std::filesystem::path draft = archive_draft(file);
    remove_draft(draft);  // of one who was killed here
    Result<WriterLock> lock = write(draft, std::move(taken));
    Result<void> made = lock.ok() ? rename_into_place(draft, file) : Result<void>(lock.error());
    remove_draft(draft);
    RETURN_IF_ERROR(made);
    return open(std::move(lock).value());
  };
  Result<std::unique_ptr<Archive>> archive = begin();
  if (!archive.ok()) std::filesystem::remove(file.parent_path(), trouble);  // when it is empty
  return archive;
}

}  // namespace

Result<std::unique_ptr<Archive>> Archive::create(const std::filesystem::path& file,
                                                 const CampaignConfig& config,
                                                 const Environment& environment,
                                                 const ArchiveOptions& options) {
  const auto write = [&](const std::filesystem::path& draft, WriterLock lock) {
    return write_draft(draft, config, environment, options, std::move(lock));
  };
  return begin_archive(
      file, write, [&](WriterLock lock) { return open_locked(file, options, std::move(lock)); });
}

Result<void> Archive::fork(const ForkRequest& request) {
  const auto write = [&](const std::filesystem::path& draft, WriterLock lock) {
    return write_fork_draft(draft, request, std::move(lock));
  };
  const auto opened = begin_archive(request.file, write, [&](WriterLock lock) {
    return open_locked(request.file, {}, std::move(lock));
  });
  return opened.ok() ? Result<void>() : opened.error();
}

Result<std::unique_ptr<Archive>> Archive::open_for_append(const std::filesystem::path& file,
                                                          const ArchiveOptions& options) {
  // Before the lock: a missing run gets no lock file.
  if (std::error_code trouble; !std::filesystem::exists(file, trouble))
    return Database::open(file, OpenMode::append).error();
  ASSIGN_OR_RETURN(WriterLock lock, WriterLock::take(file));
  return open_locked(file, options, std::move(lock));
}

Result<std::unique_ptr<Archive>> Archive::open_read_only(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(Database database, Database::open(file, OpenMode::read_only));
  RETURN_IF_ERROR(require_current_schema(database));
  auto archive = std::make_unique<SqliteArchive>(std::move(database), std::nullopt, nullptr);
  RETURN_IF_ERROR(archive->load());
  return std::unique_ptr<Archive>(std::move(archive));
}

bool remove_stillborn_run(const std::filesystem::path& run_folder) {
  namespace fs = std::filesystem;
  const fs::path file = run_folder / "archive.sqlite";
  const std::set<fs::path> ours{file.parent_path() / "archive.lock", archive_draft(file),
                                archive_draft(file).string() + "-journal"};
  const auto is_stillborn = [&] {
    std::error_code trouble;
    for (const fs::directory_entry& entry : fs::directory_iterator(run_folder, trouble))
      if (!ours.contains(entry.path())) return false;
    return !trouble;
  };
  if (!is_stillborn()) return false;
  const Result<WriterLock> lock = WriterLock::take(file);
  if (!lock.ok() || !is_stillborn()) return false;
  std::error_code trouble;
  remove_draft(archive_draft(file));
  fs::remove(run_folder / "archive.lock", trouble);
  return fs::remove(run_folder, trouble);
}

}  // namespace kbeam
