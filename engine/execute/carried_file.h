// Files of a folder that came from elsewhere: read from that folder and from nowhere else, whatever
// links or names it holds.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kbeam {

// Whether something of this name is there, be it only a link to nothing.
bool is_carried(const std::filesystem::path& folder, std::string_view name);

// `name` is relative, "plans/HASH.json". Refuses what leads out of the folder, symbolic links in
// any place below it, and what is no regular file. The folder itself may be a link.
Result<std::string> read_carried_file(const std::filesystem::path& folder, std::string_view name);

}  // namespace kbeam
