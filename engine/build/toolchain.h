// Which compiler this machine has, and what `-march` means to it here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

struct Toolchain {
  std::filesystem::path program;  // absolute
  std::string version;            // first line of --version
  std::string target;             // every machine option that -march stands for on this machine
  bool is_clang = false;

  std::filesystem::path prefix() const { return program.parent_path().parent_path(); }
  // The whole environment of a compiler run: temporary files go to `folder`.
  std::vector<std::string> environment(const std::filesystem::path& folder) const;
};

Result<Toolchain> find_toolchain(const std::string& command, const std::string& march);

// On the PATH, else where CUDA_HOME, CUDA_PATH or the installer's usual folder has the CUDA
// toolkit; empty when it is nowhere.
std::filesystem::path find_cuda_tool(const std::string& name);

// nvcc, found so unless `command` is a path. It has no `target`.
Result<Toolchain> find_cuda_toolchain(const std::string& command);

}  // namespace kbeam
