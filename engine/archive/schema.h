// The tables of an archive, and how an older archive becomes a current one.
#pragma once

#include "archive/database.h"
#include "base/result.h"

namespace kbeam {

// Brings a new or older file to the current schema, in one transaction; refuses a newer or foreign
// file.
Result<void> migrate(Database& database);
// The same tests without changing anything: an older file is refused too.
Result<void> require_current_schema(const Database& database);

int current_schema_version();

}  // namespace kbeam
