// What the commands that talk to a run share: who speaks, whether anybody listens, and what was
// said so far, for status.
#pragma once

#include <filesystem>
#include <string>

#include "apps/cli/command.h"
#include "archive/archive.h"
#include "base/json.h"
#include "base/result.h"

namespace kbeam::cli {

// KBEAM_AS, else the name of the user.
std::string speaker();

// Whether the family was dropped and not protected since, in the archive or by what still waits.
Result<bool> is_dropped(const Archive& archive, const std::filesystem::path& run_folder,
                        const std::string& family);

// A process has this run open for writing.
bool is_live(const std::filesystem::path& run_folder);

// `kbeam resume` of a run that is live: it goes on if it was paused.
int resume_live_run(const std::filesystem::path& run_folder, const Options& options);

// Adds "steering" (what was said), "waiting" (what nobody has heard yet), "paused" and
// "forked_from" to a status.
Result<void> add_steering(const Archive& archive, const std::filesystem::path& run_folder,
                          Json& status);
void print_steering(const Json& status);

// Two words on the command line, the run first, or one, for the latest run.
struct Addressed {
  std::filesystem::path run;
  std::string word;
};
Result<Addressed> read_addressed(const Options& options, const std::string& second);

}  // namespace kbeam::cli
