// Reading and writing files without half-written results. Does not watch, lock or delete.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace kbeam {

Result<std::string> read_file(const std::filesystem::path& path);

// Writes beside `path`, syncs, then renames over it: a reader sees the old content or the new.
Result<void> write_file(const std::filesystem::path& path, std::string_view content);

// A fresh empty folder below `parent`, named `prefix` and random letters.
Result<std::filesystem::path> make_temporary_folder(const std::filesystem::path& parent,
                                                    std::string_view prefix);

// The folder that holds problems/, contract/ and the runner: the source tree's build, or the
// install prefix. Set by KBEAM_HOME when it is neither.
struct Home {
  std::filesystem::path contract_include;  // contract/include
  std::filesystem::path problems;
  std::filesystem::path runner;   // the kbeam-runner binary
  std::filesystem::path planner;  // kbeam-planner: plans CUDA candidates
  std::filesystem::path worker;   // kbeam-worker: judges them on a GPU; absent without the toolkit
  std::filesystem::path devices;  // descriptions of GPUs, one JSON file each
  std::filesystem::path
      problem_template;  // what new-problem copies: itself a problem, tested like the others
};
Result<Home> find_home();

// $XDG_CACHE_HOME/kbeam or ~/.cache/kbeam; compiled problems and candidates live there.
std::filesystem::path cache_folder();

}  // namespace kbeam
