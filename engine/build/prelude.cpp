#include "build/prelude.h"

#include "base/files.h"
#include "base/hash.h"
#include "build/compiler_run.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr char kPrelude[] = R"(// The headers that nearly every candidate includes.
#include <kbeam/candidate.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
)";
constexpr char kHeaderName[] = "prelude.h";
constexpr char kSizeName[] = "size";  // of the compiled header: a short one is made again

std::string compiled_name(const Toolchain& toolchain) {
  return toolchain.is_clang ? "prelude.h.pch" : "prelude.h.gch";
}

// Large, and written by one process for all: more room than a candidate gets.
constexpr BuildLimits kPreludeLimits = {
    .timeout_s = 120, .memory_bytes = 4LL << 30, .output_bytes = 512LL << 20};

bool is_whole(const fs::path& folder, const Toolchain& toolchain) {
  std::error_code trouble;
  const auto recorded = read_file(folder / kSizeName);
  const std::uintmax_t size = fs::file_size(folder / compiled_name(toolchain), trouble);
  return recorded.ok() && !trouble && *recorded == std::to_string(size);
}

// The header lies where it stays: clang remembers its path and its time.
Result<fs::path> place_header(const BuildCache& cache) {
  const std::string key = Hasher().field("prelude header").field(kPrelude).hex();
  const fs::path place = cache.place_of(key);
  if (fs::exists(place / kHeaderName)) return place;
  ASSIGN_OR_RETURN(CacheDraft draft, cache.start());
  RETURN_IF_ERROR(write_file(draft.folder() / kHeaderName, kPrelude));
  return cache.keep_folder(std::move(draft), key);
}

Result<void> compile(const PreludeRequest& request, const fs::path& header,
                     const fs::path& folder) {
  CompilerRun run{.arguments = request.flags,
                  .folder = folder,
                  .read = {request.contract_include, header},
                  .limits = kPreludeLimits};
  // Content decides (it is in the key): a checkout that only touches a header changes nothing.
  if (request.toolchain.is_clang)
    run.arguments.insert(run.arguments.end(), {"-Xclang", "-fno-pch-timestamp"});
  const std::string source = (header / kHeaderName).string();
  for (const std::string& argument : {std::string("-x"), std::string("c++-header"), source,
                                      std::string("-o"), compiled_name(request.toolchain)})
    run.arguments.push_back(argument);
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_compiler(request.toolchain, request.sandbox, run));
  if (outcome.exit_code != 0)
    return Error{ErrorCode::bad_input, "compile the headers that candidates include",
                 explain_failure(outcome, run.limits).reason + "\n" + outcome.output,
                 "check [build] flags of the problem and the compiler"};
  std::error_code trouble;
  const std::uintmax_t size = fs::file_size(folder / compiled_name(request.toolchain), trouble);
  return write_file(folder / kSizeName, std::to_string(size));
}

}  // namespace

Result<Prelude> make_prelude(const PreludeRequest& request) {
  Hasher hasher;
  hasher.field("prelude 2")
      .field(kPrelude)
      .field(request.toolchain.version)
      .field(request.toolchain.target);
  hasher.field(request.contract_include.string()).field(request.contract_hash);
  for (const std::string& flag : request.flags) hasher.field(flag);
  const std::string key = hasher.hex();
  request.cache.remove_abandoned_drafts();
  fs::path folder = request.cache.place_of(key);
  ASSIGN_OR_RETURN(const fs::path header, place_header(request.cache));
  if (fs::exists(folder) && !is_whole(folder, request.toolchain)) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  if (!fs::exists(folder)) {
    ASSIGN_OR_RETURN(CacheDraft draft, request.cache.start());
    RETURN_IF_ERROR(compile(request, header, draft.folder()));
    ASSIGN_OR_RETURN(folder, request.cache.keep_folder(std::move(draft), key));
  }
  if (request.toolchain.is_clang)
    return Prelude{.folders = {folder, header},
                   .flags = {"-include-pch", (folder / compiled_name(request.toolchain)).string()}};
  // GCC looks for a compiled header beside the name, whether or not the header itself is there.
  return Prelude{.folders = {folder, header},
                 .flags = {"-include", (folder / kHeaderName).string(), "-Winvalid-pch"}};
}

}  // namespace kbeam
