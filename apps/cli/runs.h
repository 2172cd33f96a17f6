// Finding run folders: runs/RUN_ID/archive.sqlite below --dir.
#pragma once

#include <filesystem>
#include <string>

#include "apps/cli/command.h"
#include "base/result.h"

namespace kbeam::cli {

std::filesystem::path runs_folder(const Options& options);
// RUN is an id, the beginning of one, a folder, or empty for the latest.
Result<std::filesystem::path> find_run(const Options& options);
std::string make_run_id();

OptionSpec run_argument();  // RUN, optional
OptionSpec dir_option();    // --dir

}  // namespace kbeam::cli
