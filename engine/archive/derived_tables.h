// The tables that people and commands query. Each row comes from one event; nothing here is the
// only copy of a fact.
#pragma once

#include <span>
#include <string_view>

#include "archive/archive.h"
#include "archive/database.h"
#include "base/json.h"
#include "base/result.h"

namespace kbeam {

// Adds the rows that follow from one event, in the caller's transaction. Kinds without tables add
// none.
Result<void> derive_rows(Database& database, const Event& event, const Json& body);

Result<void> clear_derived_tables(Database& database);
std::span<const std::string_view> derived_table_names();

}  // namespace kbeam
