#include "build/watched_build.h"

#include <string_view>
#include <system_error>

#include "base/files.h"
#include "base/hash.h"
#include "build/compiler_run.h"

namespace kbeam {

// The texts of watch_host.cpp and model/watch_job.h, compiled in by CMake.
extern const std::string_view kWatchHostText;
extern const std::string_view kWatchJobText;

namespace {

namespace fs = std::filesystem;

constexpr char kHostName[] = "watch-host";
constexpr BuildLimits kHostLimits = {.timeout_s = 120, .memory_bytes = 4LL << 30};

}  // namespace

std::vector<std::string> watch_flags(Watch watch) {
  // Less optimised: it compiles sooner, and accesses that an optimiser would merge stay visible.
  std::vector<std::string> flags = {"-O1", "-g1", "-fno-omit-frame-pointer",
                                    "-fno-sanitize-recover=all"};
  if (watch == Watch::memory)
    flags.insert(flags.end(), {"-fsanitize=address,undefined", "-U__SANITIZE_ADDRESS__"});
  else
    flags.insert(flags.end(), {"-fsanitize=thread", "-U__SANITIZE_THREAD__"});
  return flags;
}

Result<fs::path> make_watch_host(const WatchHostRequest& request, Watch watch) {
  const std::string key = Hasher()
                              .field("watch host 1")
                              .field(kWatchHostText)
                              .field(kWatchJobText)
                              .field(request.toolchain.version)
                              .field(request.contract_hash)
                              .field(to_string(watch))
                              .hex();
  if (const fs::path known = request.cache.place_of(key) / kHostName; fs::exists(known))
    return known;
  ASSIGN_OR_RETURN(CacheDraft draft, request.cache.start());
  RETURN_IF_ERROR(write_file(draft.folder() / "watch_host.cpp", kWatchHostText));
  std::error_code trouble;  // the write below says what is wrong
  fs::create_directory(draft.folder() / "model", trouble);
  RETURN_IF_ERROR(write_file(draft.folder() / "model/watch_job.h", kWatchJobText));
  CompilerRun run{.arguments = {"-std=c++20", "-I", ".", "-I", request.contract_include.string()},
                  .folder = draft.folder(),
                  .read = {request.contract_include},
                  .limits = kHostLimits};
  for (const std::string& flag : watch_flags(watch)) run.arguments.push_back(flag);
  for (const char* argument : {"-rdynamic", "watch_host.cpp", "-o", kHostName, "-ldl", "-pthread"})
    run.arguments.emplace_back(argument);
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_compiler(request.toolchain, request.sandbox, run));
  if (outcome.exit_code != 0)
    return Error{
        ErrorCode::unavailable,
        "build the program that watches candidates with " + std::string(to_string(watch)),
        explain_failure(outcome, run.limits).reason,
        "install the compiler's sanitizers (on Debian: apt install g++, or libclang-rt-dev "
        "for clang)"};
  ASSIGN_OR_RETURN(const fs::path folder, request.cache.keep_folder(std::move(draft), key));
  return folder / kHostName;
}

}  // namespace kbeam
