// Whether the tables of an archive are what its events say. Compares, never mends.
#pragma once

#include <vector>

#include "archive/archive.h"
#include "archive/database.h"
#include "base/result.h"

namespace kbeam {

// Derives every table anew in memory and compares: the first row that differs, is missing or is too
// many is named, and so are a changed schema and a damaged page or index.
Result<void> verify_tables(const Database& database, const std::vector<Event>& events);

}  // namespace kbeam
