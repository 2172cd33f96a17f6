// What a sanitizer needs of a build: flags, and the program that runs a candidate under it. The
// candidate itself is built by compiler.cpp with these flags.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "build/build_cache.h"
#include "build/compiler_sandbox.h"
#include "build/toolchain.h"
#include "model/watch.h"

namespace kbeam {

// For compiling and for linking. A finding ends the process; a candidate cannot see by a macro that
// it is watched.
std::vector<std::string> watch_flags(Watch watch);

struct WatchHostRequest {
  const Toolchain& toolchain;
  const CompilerSandbox& sandbox;
  const BuildCache& cache;
  std::filesystem::path contract_include;
  std::string contract_hash;
};

// The program, built once for a toolchain and kept.
Result<std::filesystem::path> make_watch_host(const WatchHostRequest& request, Watch watch);

}  // namespace kbeam
