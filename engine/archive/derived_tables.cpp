#include "archive/derived_tables.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "model/json_forms.h"

namespace kbeam {
namespace {

constexpr std::array<std::string_view, 8> kTables{"ideas",        "candidates",  "rows",
                                                  "artifacts",    "evaluations", "check_reports",
                                                  "measurements", "decisions"};

// JSON's value as its column wants it; numbers that JSON spells as words become what SQLite has for
// them.
std::string text_of(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_string() ? value.get<std::string>() : json_text(value);
}
std::int64_t integer_of(const Json& object, const char* name) {
  return object.at(name).get<std::int64_t>();
}
double real_of(const Json& object, const char* name) {
  const Json& value = object.at(name);
  if (value == "inf") return HUGE_VAL;
  if (value == "-inf") return -HUGE_VAL;
  return value.is_number() ? value.get<double>() : std::nan("");
}

Result<void> derive_idea(Database& database, const Event& event, const Json& body) {
  ASSIGN_OR_RETURN(Statement insert,
                   database.prepare("INSERT INTO ideas VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(text_of(body, "id")).bind(event.sequence).bind(text_of(body, "family"));
  insert.bind(text_of(body, "category")).bind(text_of(body, "text"));
  insert.bind(text_of(body, "expected")).bind(text_of(body, "parents"));
  return insert.bind(text_of(body, "source")).run();
}

Result<void> derive_candidate(Database& database, const Event& event, const Json& body) {
  const std::string id = text_of(body, "id");
  ASSIGN_OR_RETURN(Statement insert,
                   database.prepare("INSERT INTO candidates VALUES (?, ?, ?, ?, ?, ?)"));
  insert.bind(id).bind(event.sequence).bind(text_of(body, "idea_id"));
  insert.bind(text_of(body, "family")).bind(text_of(body, "parent"));
  RETURN_IF_ERROR(insert.bind(text_of(body, "origin")).run());
  int position = 0;
  for (const Json& row : body.at("rows")) {
    ASSIGN_OR_RETURN(Statement add,
                     database.prepare("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)"));
    add.bind(id).bind(position++).bind(text_of(row, "source_hash"));
    add.bind(text_of(row, "source_name")).bind(text_of(row, "knobs"));
    RETURN_IF_ERROR(
        add.bind(integer_of(row, "axis_least")).bind(integer_of(row, "axis_most")).run());
  }
  return {};
}

Result<void> derive_artifact(Database& database, const Event& event, const Json& body) {
  ASSIGN_OR_RETURN(Statement insert,
                   database.prepare("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(event.sequence).bind(text_of(body, "candidate_id")).bind(text_of(body, "verdict"));
  insert.bind(text_of(body, "reason")).bind(text_of(body, "log_hash")).bind(text_of(body, "key"));
  insert.bind(text_of(body, "object_hash")).bind(real_of(body, "build_s"));
  return insert.bind(body.at("from_cache").get<bool>() ? 1 : 0).run();
}

Result<void> derive_check(Database& database, const std::string& evaluation_id, int position,
                          const Json& report) {
  ASSIGN_OR_RETURN(
      Statement insert,
      database.prepare("INSERT INTO check_reports VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(evaluation_id).bind(position).bind(text_of(report, "case_name"));
  insert.bind(text_of(report, "verdict")).bind(text_of(report, "grade"));
  insert.bind(text_of(report, "sentence")).bind(integer_of(report, "outputs_checked"));
  return insert.bind(text_of(report, "seed")).bind(text_of(report, "figures")).run();
}

Result<void> derive_measurement(Database& database, const std::string& evaluation_id, int position,
                                const Json& measurement) {
  const Json& summary = measurement.at("summary");
  ASSIGN_OR_RETURN(
      Statement insert,
      database.prepare("INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                       "?, ?, ?)"));
  insert.bind(evaluation_id).bind(position).bind(text_of(measurement, "case_name"));
  insert.bind(text_of(measurement, "reference")).bind(integer_of(measurement, "threads"));
  insert.bind(text_of(measurement, "samples_hash")).bind(text_of(measurement, "stopping_rule"));
  insert.bind(text_of(measurement, "stop_reason")).bind(real_of(measurement, "noise_floor"));
  for (const char* figure :
       {"candidate_ns", "reference_ns", "speedup", "low", "high", "confidence"})
    insert.bind(real_of(summary, figure));
  return insert.bind(integer_of(summary, "pairs")).bind(text_of(summary, "comparison")).run();
}

Result<void> derive_evaluation(Database& database, const Event& event, const Json& body) {
  const std::string id = text_of(body, "id");
  ASSIGN_OR_RETURN(
      Statement insert,
      database.prepare("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(id).bind(event.sequence);
  for (const char* word : {"candidate_id", "stage", "verdict", "reason", "grade", "sandbox"})
    insert.bind(text_of(body, word));
  for (const char* cost : {"build_s", "check_s", "measure_s"}) insert.bind(real_of(body, cost));
  insert.bind(integer_of(body, "started_unix_ms")).bind(integer_of(body, "ended_unix_ms"));
  RETURN_IF_ERROR(insert.run());
  int position = 0;
  for (const Json& report : body.at("checks"))
    RETURN_IF_ERROR(derive_check(database, id, position++, report));
  position = 0;
  for (const Json& measurement : body.at("measurements"))
    RETURN_IF_ERROR(derive_measurement(database, id, position++, measurement));
  return {};
}

Result<void> derive_decision(Database& database, const Event& event, const Json& body) {
  ASSIGN_OR_RETURN(Statement insert, database.prepare("INSERT INTO decisions VALUES (?, ?, ?, ?)"));
  insert.bind(event.sequence).bind(text_of(body, "what")).bind(text_of(body, "subject"));
  return insert.bind(text_of(body, "why")).run();
}

}  // namespace

Result<void> derive_rows(Database& database, const Event& event, const Json& body) {
  try {
    if (event.kind == "idea") return derive_idea(database, event, body);
    if (event.kind == "candidate") return derive_candidate(database, event, body);
    if (event.kind == "artifact") return derive_artifact(database, event, body);
    if (event.kind == "evaluation") return derive_evaluation(database, event, body);
    if (event.kind == "decision") return derive_decision(database, event, body);
    return {};
  } catch (const Json::exception& trouble) {
    return Error{
        ErrorCode::corrupt,
        "derive tables from event " + std::to_string(event.sequence) + " (" + event.kind + ")",
        trouble.what(), "the record was written by another version of kbeam"};
  }
}

Result<void> clear_derived_tables(Database& database) {
  for (const std::string_view table : kTables)
    RETURN_IF_ERROR(database.execute("DELETE FROM " + std::string(table)));
  return {};
}

std::span<const std::string_view> derived_table_names() {
  return kTables;
}

}  // namespace kbeam
