// Text in gzip files: a recorded space is a megabyte of JSON and a tenth of that packed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kbeam {

bool is_gzip(std::string_view bytes);  // by its first two bytes

// The same text gives the same bytes: no name and no time are stored.
std::string gzip(std::string_view text);
// Of one member or several. `name` is for the error; more than `most_bytes` of text are refused.
Result<std::string> gunzip(std::string_view bytes, const std::string& name,
                           std::size_t most_bytes = std::size_t{1} << 30);

}  // namespace kbeam
