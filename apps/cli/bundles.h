// What a run remembers of the task folders that were bundled from it, so that only their results
// are collected into it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "execute/evaluation_task.h"

namespace kbeam::cli {

// Notes a task folder that was written from the run.
Result<void> note_bundle(const std::filesystem::path& run, const std::filesystem::path& folder);
// Refuses a task that the run did not bundle, or that is another one by now.
Result<void> must_be_bundled(const std::filesystem::path& run, const LoadedTask& task);

std::uint64_t folder_bytes(const std::filesystem::path& folder);

}  // namespace kbeam::cli
