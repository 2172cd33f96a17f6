#include "archive/table_check.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "archive/derived_tables.h"
#include "archive/schema.h"
#include "base/foreign_json.h"

namespace kbeam {
namespace {

Error damaged(const Database& database, const std::string& what) {
  return {ErrorCode::corrupt, "read archive " + database.file().string(),
          what + " is not as it was written",
          "the file was changed or the disk is failing: restore it from a copy; when only a table "
          "is damaged, `kbeam resume` can go on, for events are the truth"};
}

Result<std::vector<std::string>> lines_of(const Database& database, const std::string& sql) {
  std::vector<std::string> lines;
  ASSIGN_OR_RETURN(Statement select, database.prepare(sql));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return lines;
    lines.push_back(select.text(0));
  }
}

// Every row of a table as one line that tells values and types apart.
Result<std::vector<std::string>> rows_of(const Database& database, const std::string& table) {
  ASSIGN_OR_RETURN(const std::vector<std::string> columns,
                   lines_of(database, "SELECT name FROM pragma_table_info('" + table + "')"));
  std::string all;
  for (const std::string& column : columns)
    all += (all.empty() ? "" : " || ', ' || ") + ("quote(\"" + column + "\")");
  return lines_of(database, "SELECT " + all + " FROM \"" + table + "\" ORDER BY 1");
}

Result<void> compare(const Database& found, const Database& derived, const std::string& table) {
  ASSIGN_OR_RETURN(const std::vector<std::string> is, rows_of(found, table));
  ASSIGN_OR_RETURN(const std::vector<std::string> should_be, rows_of(derived, table));
  if (is == should_be) return {};
  const std::multiset<std::string> known(is.begin(), is.end());
  for (const std::string& row : should_be)
    if (!known.contains(row))
      return damaged(found, "table " + table + ", row (" + row.substr(0, 120) + "),");
  return damaged(found, "table " + table + ", which has rows of no event,");
}

}  // namespace

Result<void> verify_tables(const Database& database, const std::vector<Event>& events) {
  ASSIGN_OR_RETURN(const std::vector<std::string> pages,
                   lines_of(database, "PRAGMA integrity_check(1)"));
  if (pages != std::vector<std::string>{"ok"})
    return damaged(database, pages.empty() ? "a page" : pages.front() + ": the file");
  ASSIGN_OR_RETURN(Database derived, Database::open_in_memory());
  RETURN_IF_ERROR(migrate(derived));
  const std::string schema = "SELECT ifnull(sql, name) FROM sqlite_schema ORDER BY 1";
  ASSIGN_OR_RETURN(const std::vector<std::string> schema_is, lines_of(database, schema));
  ASSIGN_OR_RETURN(const std::vector<std::string> schema_should_be, lines_of(derived, schema));
  if (schema_is != schema_should_be) return damaged(database, "the schema of the tables");
  for (const Event& event : events) {
    const Json body = parse_foreign_json(event.body);
    RETURN_IF_ERROR(derive_rows(derived, event, body));
  }
  for (const std::string_view table : derived_table_names())
    RETURN_IF_ERROR(compare(database, derived, std::string(table)));
  return {};
}

}  // namespace kbeam
