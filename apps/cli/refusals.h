// Errors that several commands have to give about a user's file or flags, in one wording.
#pragma once

#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/result.h"
#include "model/verdict.h"

namespace kbeam::cli {

// Of a file that was not built: why, once, and what the compiler said.
Error refused_build(const std::string& file, Verdict verdict, const std::string& reason,
                    const std::string& log);

// The description of the device that --gpu names; one of those of the installation.
Result<std::filesystem::path> find_device_description(const Home& home, const std::string& name);

}  // namespace kbeam::cli
