// One header with the contract and the usual standard headers, precompiled once for each set of
// flags: most of a small candidate's compile time is header time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "build/build_cache.h"
#include "build/compiler_sandbox.h"
#include "build/toolchain.h"

namespace kbeam {

struct PreludeRequest {
  const Toolchain& toolchain;
  const CompilerSandbox& sandbox;
  const BuildCache& cache;
  std::filesystem::path contract_include;
  std::string contract_hash;
  std::vector<std::string> flags;  // all that the candidate is compiled with, but for its knobs
};

struct Prelude {
  std::vector<std::filesystem::path> folders;  // that a compile reads
  std::vector<std::string> flags;              // that make a compile use it
};

// An Error with the compiler's words when the flags do not work.
Result<Prelude> make_prelude(const PreludeRequest& request);

}  // namespace kbeam
