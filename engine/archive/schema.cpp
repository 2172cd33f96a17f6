#include "archive/schema.h"

#include <array>
#include <string>
#include <string_view>

namespace kbeam {
namespace {

constexpr std::int64_t kApplicationId = 0x6b626561;  // "kbea": `file archive.sqlite` shows it

// Entry i takes a file from version i to i + 1. Entries are never edited once released, only added.
// `hash` of an event covers the event and the hash before it, so no event can change or vanish
// unseen. Derived tables hold NULL where a number is NaN.
constexpr std::array<std::string_view, 1> kMigrations{R"sql(
CREATE TABLE events(
  sequence INTEGER PRIMARY KEY,
  unix_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_kind ON events(kind, sequence);
CREATE TABLE blobs(
  hash TEXT PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE ideas(
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  family TEXT NOT NULL,
  category TEXT NOT NULL,
  text TEXT NOT NULL,
  expected TEXT NOT NULL,
  parents TEXT NOT NULL,
  source TEXT NOT NULL
) STRICT;
CREATE TABLE candidates(
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  idea_id TEXT NOT NULL,
  family TEXT NOT NULL,
  parent TEXT NOT NULL,
  origin TEXT NOT NULL
) STRICT;
CREATE TABLE rows(
  candidate_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  source_hash TEXT NOT NULL,
  source_name TEXT NOT NULL,
  knobs TEXT NOT NULL,
  axis_least INTEGER NOT NULL,
  axis_most INTEGER NOT NULL,
  PRIMARY KEY (candidate_id, position)
) STRICT;
CREATE TABLE artifacts(
  sequence INTEGER PRIMARY KEY,
  candidate_id TEXT NOT NULL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  log_hash TEXT NOT NULL,
  key TEXT NOT NULL,
  object_hash TEXT NOT NULL,
  build_s REAL,
  from_cache INTEGER NOT NULL
) STRICT;
CREATE TABLE evaluations(
  id TEXT PRIMARY KEY,
  sequence INTEGER NOT NULL,
  candidate_id TEXT NOT NULL,
  stage TEXT NOT NULL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  grade TEXT NOT NULL,
  sandbox TEXT NOT NULL,
  build_s REAL,
  check_s REAL,
  measure_s REAL,
  started_unix_ms INTEGER NOT NULL,
  ended_unix_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX evaluations_by_candidate ON evaluations(candidate_id);
CREATE TABLE check_reports(
  evaluation_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  case_name TEXT NOT NULL,
  verdict TEXT NOT NULL,
  grade TEXT NOT NULL,
  sentence TEXT NOT NULL,
  outputs_checked INTEGER NOT NULL,
  seed TEXT NOT NULL,
  figures TEXT NOT NULL,
  PRIMARY KEY (evaluation_id, position)
) STRICT;
CREATE TABLE measurements(
  evaluation_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  case_name TEXT NOT NULL,
  reference TEXT NOT NULL,
  threads INTEGER NOT NULL,
  samples_hash TEXT NOT NULL,
  stopping_rule TEXT NOT NULL,
  stop_reason TEXT NOT NULL,
  noise_floor REAL,
  candidate_ns REAL,
  reference_ns REAL,
  speedup REAL,
  low REAL,
  high REAL,
  confidence REAL,
  pairs INTEGER NOT NULL,
  comparison TEXT NOT NULL,
  PRIMARY KEY (evaluation_id, position)
) STRICT;
CREATE TABLE decisions(
  sequence INTEGER PRIMARY KEY,
  what TEXT NOT NULL,
  subject TEXT NOT NULL,
  why TEXT NOT NULL
) STRICT;
CREATE INDEX decisions_by_subject ON decisions(subject);
)sql"};

Error wrong_schema(const Database& database, const std::string& happened,
                   const std::string& advice) {
  return {ErrorCode::bad_input, "open archive " + database.file().string(), happened, advice};
}

Result<std::int64_t> readable_version(const Database& database) {
  ASSIGN_OR_RETURN(const std::int64_t version, database.number("PRAGMA user_version"));
  ASSIGN_OR_RETURN(const std::int64_t application, database.number("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const std::int64_t tables,
                   database.number("SELECT COUNT(*) FROM sqlite_schema"));
  if (application != kApplicationId && tables > 0)
    return wrong_schema(database, "it is an SQLite file, but not an archive of kbeam",
                        "check the path");
  if (version > current_schema_version())
    return wrong_schema(database,
                        "it has schema version " + std::to_string(version) +
                            "; this kbeam knows versions up to " +
                            std::to_string(current_schema_version()),
                        "use the kbeam that wrote it, or a newer one");
  return version;
}

}  // namespace

int current_schema_version() {
  return static_cast<int>(kMigrations.size());
}

Result<void> migrate(Database& database) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database));
  ASSIGN_OR_RETURN(const std::int64_t version, readable_version(database));
  for (std::size_t i = static_cast<std::size_t>(version); i < kMigrations.size(); ++i)
    RETURN_IF_ERROR(database.execute(std::string(kMigrations[i])));
  RETURN_IF_ERROR(database.execute("PRAGMA application_id = " + std::to_string(kApplicationId)));
  RETURN_IF_ERROR(
      database.execute("PRAGMA user_version = " + std::to_string(current_schema_version())));
  return transaction.commit();
}

Result<void> require_current_schema(const Database& database) {
  ASSIGN_OR_RETURN(const std::int64_t version, readable_version(database));
  if (version == current_schema_version()) return {};
  return wrong_schema(database,
                      version == 0 ? "it holds no run yet"
                                   : "it was written by an older kbeam (schema version " +
                                         std::to_string(version) + ")",
                      "open it once for writing with `kbeam resume`, which brings it up to date");
}

}  // namespace kbeam
