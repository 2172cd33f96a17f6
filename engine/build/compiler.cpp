// g++ and clang++. A build is: rules on the source, cache, compile, rules on the object, link,
// rules on the module. For a .cu the steps from compile on are cuda_build.h's.
#include "build/compiler.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/defence.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/spelling.h"
#include "build/build_cache.h"
#include "build/compiler_run.h"
#include "build/compiler_sandbox.h"
#include "build/cuda_build.h"
#include "build/knob_value.h"
#include "build/object_rules.h"
#include "build/prelude.h"
#include "build/source_language.h"
#include "build/source_rules.h"
#include "build/source_scan.h"
#include "build/toolchain.h"
#include "build/watched_build.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr std::size_t kMostSourceBytes = 1 << 20;
constexpr char kSourceName[] = "candidate.cpp";
constexpr char kObjectName[] = "candidate.o";

void append(Words& to, const Words& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Artifact failed(Verdict verdict, const std::string& reason) {
  return {.verdict = verdict, .log = reason, .reason = reason};
}

// Every candidate is compiled under one name, so that equal sources are equal builds; people see
// their own name.
void show_name(Artifact& artifact, const std::string& source_name) {
  const bool is_cuda = language_of(source_name) == SourceLanguage::cuda;
  const std::string_view inner = is_cuda ? CudaBuild::kCandidateName : kSourceName;
  for (std::string* text : {&artifact.log, &artifact.reason}) {
    for (std::size_t at = text->find(inner); at != std::string::npos;
         at = text->find(inner, at + source_name.size()))
      text->replace(at, inner.size(), source_name);
  }
}

Result<std::string> hash_folder(const fs::path& folder, const Words& extensions) {
  std::vector<fs::path> files;
  std::error_code trouble;
  for (auto entry = fs::recursive_directory_iterator(folder, trouble);
       !trouble && entry != fs::end(entry); entry.increment(trouble))
    if (entry->is_regular_file() &&
        std::count(extensions.begin(), extensions.end(), entry->path().extension()) > 0)
      files.push_back(entry->path());
  if (trouble)
    return Error{ErrorCode::not_found, "read the headers in " + folder.string(), trouble.message(),
                 "check the path"};
  std::sort(files.begin(), files.end());
  Hasher hasher;
  for (const fs::path& file : files) {
    ASSIGN_OR_RETURN(const std::string content, read_file(file));
    hasher.field(file.lexically_relative(folder).generic_string()).field(content);
  }
  return hasher.hex();
}

std::optional<std::string> find_knob_mistake(const BuildRequest& request) {
  if (request.knobs.empty()) return std::nullopt;
  Words declared;
  for (const Knob& knob : scan_knobs(request.source).knobs) declared.push_back(knob.name);
  for (const auto& [name, value] : request.knobs) {
    if (!is_knob_name(name) || std::count(declared.begin(), declared.end(), name) == 0) {
      const auto close = closest_word(name, declared);
      return "there is no knob " + name + " in " + request.source_name +
             (close ? "; did you mean " + *close + "?" : std::string());
    }
    if (!is_knob_value(value) && defence_is_on(Defence::knob_rules))
      return "the value " + value + " of the knob " + name + " is no number, name, true or false";
  }
  return std::nullopt;
}

class GccCompiler final : public Compiler {
 public:
  GccCompiler(Options options, Toolchain toolchain, CompilerSandbox sandbox,
              std::string contract_hash)
      : options_(std::move(options)),
        toolchain_(std::move(toolchain)),
        sandbox_(std::move(sandbox)),
        contract_hash_(std::move(contract_hash)),
        cache_(options_.cache / "builds") {
    cache_.remove_abandoned_drafts();
  }

  Result<Artifact> build(const BuildRequest& request) override;
  Result<WatchedBuild> build_watched(const BuildRequest& request, Watch watch) override;
  Result<fs::path> build_problem(const fs::path& code) override;
  const std::string& version() const override { return toolchain_.version; }
  Result<std::string> cuda_version() override;
  Words candidate_flags() const override;
  Words weaknesses() const override { return sandbox_.weaknesses(); }

  // The prelude for these flags, made on first use.
  Result<Prelude> prelude_for(const Words& problem_flags);

 private:
  Words language_flags() const;
  Words link_flags(const Words& libraries) const;
  Result<Artifact> find_or_build(const BuildRequest& request);
  void hash_surroundings(Hasher& hasher, const Words& flags) const;
  Result<const CudaBuild*> cuda();  // made on first use
  Result<std::string> key_of(const BuildRequest& request);
  void hash_cuda(Hasher& hasher, const CudaBuild& build) const;
  Result<Artifact> build_new(const std::string& key, const BuildRequest& request);
  Result<fs::path> build_cuda_problem(const fs::path& source);
  Result<fs::path> keep_problem(CacheDraft draft, const fs::path& source, Built built);
  Result<Built> compile_in(const fs::path& folder, const BuildRequest& request);
  Result<ProcessOutcome> compile_object(const fs::path& folder, const BuildRequest& request);
  Result<Built> compile_watched(const fs::path& folder, const BuildRequest& request, Watch watch);
  Result<Built> link_in(const fs::path& folder, const Words& libraries, std::string log) const;
  enum class Urgency { awaited, ahead };  // somebody waits for it; built ahead of a measurement
  Result<ProcessOutcome> run(Words arguments, const fs::path& folder, std::vector<fs::path> read,
                             Urgency urgency) const;
  static Urgency urgency_of(const Words& libraries) {
    return libraries.empty() ? Urgency::ahead : Urgency::awaited;
  }

  Options options_;
  Toolchain toolchain_;
  CompilerSandbox sandbox_;
  std::string contract_hash_;
  BuildCache cache_;
  std::mutex prelude_mutex_;
  std::map<Words, Prelude> preludes_;
  std::mutex cuda_mutex_;
  std::optional<CudaBuild> cuda_;
};

Words GccCompiler::language_flags() const {
  Words flags = {
      "-std=c++20",          "-O3",   "-march=" + options_.march, "-fno-math-errno", "-fPIC",
      "-fvisibility=hidden", "-Wall", "-Werror=date-time"};
  if (toolchain_.is_clang)
    append(flags, {"-ferror-limit=20", "-fno-color-diagnostics"});
  else
    append(flags, {"-fno-gnu-unique", "-fmax-errors=20", "-fdiagnostics-color=never"});
  append(flags, {"-I", options_.contract_include.string()});
  return flags;
}

Words GccCompiler::link_flags(const Words& libraries) const {
  Words flags = {"-shared", "-Wl,-z,defs", "-Wl,--as-needed", "-Wl,--build-id=none"};
  for (const std::string& library : libraries) flags.push_back("-l" + library);
  return flags;
}

Words GccCompiler::candidate_flags() const {
  Words flags = language_flags();
  append(flags, link_flags({}));
  return flags;
}

// All that decides a build beside the source: compiler, instruction set, contract, flags.
void GccCompiler::hash_surroundings(Hasher& hasher, const Words& flags) const {
  hasher.field(toolchain_.version).field(toolchain_.target).field(contract_hash_);
  hasher.field(static_cast<std::int64_t>(flags.size()));
  for (const std::string& flag : flags) hasher.field(flag);
}

void GccCompiler::hash_cuda(Hasher& hasher, const CudaBuild& build) const {
  hasher.field(contract_hash_);
  build.hash_surroundings(hasher);
}

Result<const CudaBuild*> GccCompiler::cuda() {
  const std::lock_guard lock(cuda_mutex_);
  if (!cuda_) {
    ASSIGN_OR_RETURN(cuda_, CudaBuild::make({.command = options_.cuda_command,
                                             .architectures = options_.cuda_architectures,
                                             .contract_include = options_.contract_include,
                                             .limits = options_.cuda_limits,
                                             .idle_priority = options_.idle_priority,
                                             .cancelled = options_.cancelled},
                                            toolchain_));
  }
  return &*cuda_;
}

Result<std::string> GccCompiler::cuda_version() {
  ASSIGN_OR_RETURN(const CudaBuild* const build, cuda());
  return build->version();
}

Result<std::string> GccCompiler::key_of(const BuildRequest& request) {
  Hasher hasher;
  if (language_of(request.source_name) == SourceLanguage::cuda) {
    ASSIGN_OR_RETURN(const CudaBuild* const build, cuda());
    hash_cuda(hasher.field("cuda candidate 1"), *build);
    hasher.field(static_cast<std::int64_t>(request.flags.size()));
    for (const std::string& flag : request.flags) hasher.field(flag);
  } else {
    Words flags = language_flags();
    append(flags, request.flags);
    append(flags, link_flags(request.link));
    hash_surroundings(hasher.field("candidate 2"), flags);
  }
  hasher.field(request.source).field(static_cast<std::int64_t>(request.knobs.size()));
  for (const auto& [name, value] : request.knobs) hasher.field(name).field(value);
  return hasher.hex();
}

Result<Prelude> GccCompiler::prelude_for(const Words& problem_flags) {
  const std::lock_guard lock(prelude_mutex_);
  if (const auto known = preludes_.find(problem_flags); known != preludes_.end())
    return known->second;
  Words flags = language_flags();
  append(flags, problem_flags);
  ASSIGN_OR_RETURN(Prelude prelude, make_prelude({.toolchain = toolchain_,
                                                  .sandbox = sandbox_,
                                                  .cache = BuildCache(options_.cache / "preludes"),
                                                  .contract_include = options_.contract_include,
                                                  .contract_hash = contract_hash_,
                                                  .flags = flags}));
  preludes_.emplace(problem_flags, prelude);
  return prelude;
}

Result<ProcessOutcome> GccCompiler::run(Words arguments, const fs::path& folder,
                                        std::vector<fs::path> read, Urgency urgency) const {
  return run_compiler(toolchain_, sandbox_,
                      {.arguments = std::move(arguments),
                       .folder = folder,
                       .read = std::move(read),
                       .start_in = {},
                       .limits = options_.limits,
                       .idle_priority = options_.idle_priority && urgency == Urgency::ahead,
                       .cancelled = options_.cancelled});
}

Result<Artifact> GccCompiler::build(const BuildRequest& request) {
  ASSIGN_OR_RETURN(Artifact artifact, find_or_build(request));
  artifact.log = printable(artifact.log);
  artifact.reason = printable(artifact.reason);
  return artifact;
}

Result<Artifact> GccCompiler::find_or_build(const BuildRequest& request) {
  if (request.source.size() > kMostSourceBytes)
    return failed(Verdict::build_failed,
                  "the source is larger than " + std::to_string(kMostSourceBytes) + " bytes");
  if (const auto mistake = find_knob_mistake(request))
    return failed(Verdict::build_failed, *mistake);
  const SourceOrigin origin =
      request.link.empty() ? SourceOrigin::candidate : SourceOrigin::baseline;
  if (const auto refusal = find_refusal(request.source, origin, language_of(request.source_name));
      refusal && defence_is_on(Defence::source_rules))
    return failed(
        Verdict::refused_object,
        request.source_name + ":" + std::to_string(refusal->line) + ": " + refusal->text());
  ASSIGN_OR_RETURN(const std::string key, key_of(request));
  std::optional<Artifact> artifact = cache_.find(key);
  if (!artifact) {
    ASSIGN_OR_RETURN(artifact, build_new(key, request));
  }
  show_name(*artifact, request.source_name);
  return std::move(*artifact);
}

Result<Artifact> GccCompiler::build_new(const std::string& key, const BuildRequest& request) {
  const SystemClock clock;
  const std::int64_t started_ns = clock.monotonic_ns();
  ASSIGN_OR_RETURN(CacheDraft draft, cache_.start());
  ASSIGN_OR_RETURN(Built built, compile_in(draft.folder(), request));
  built.artifact.key = key;
  built.artifact.log = printable(built.artifact.log);  // JSON holds UTF-8 only
  built.artifact.reason = printable(built.artifact.reason);
  built.artifact.build_s = static_cast<double>(clock.monotonic_ns() - started_ns) * 1e-9;
  if (!built.repeatable) return std::move(built.artifact);
  return cache_.keep(std::move(draft), std::move(built.artifact));
}

Result<ProcessOutcome> GccCompiler::compile_object(const fs::path& folder,
                                                   const BuildRequest& request) {
  ASSIGN_OR_RETURN(const Prelude prelude, prelude_for(request.flags));
  RETURN_IF_ERROR(write_file(folder / kSourceName, request.source));
  Words arguments = language_flags();
  append(arguments, request.flags);
  append(arguments, prelude.flags);
  for (const auto& [name, value] : request.knobs)
    arguments.push_back("-DKBEAM_SET_" + name + "=~," + value);
  append(arguments, {"-c", kSourceName, "-o", kObjectName});
  std::vector<fs::path> read = prelude.folders;
  read.push_back(options_.contract_include);
  return run(std::move(arguments), folder, std::move(read), urgency_of(request.link));
}

Result<WatchedBuild> GccCompiler::build_watched(const BuildRequest& request, Watch watch) {
  BuildRequest watched = request;
  append(watched.flags, watch_flags(watch));
  ASSIGN_OR_RETURN(const std::string plain_key, key_of(watched));
  const std::string key = Hasher().field("watched 1").field(plain_key).hex();
  WatchedBuild build;
  ASSIGN_OR_RETURN(build.host, make_watch_host({.toolchain = toolchain_,
                                                .sandbox = sandbox_,
                                                .cache = BuildCache(options_.cache / "watch"),
                                                .contract_include = options_.contract_include,
                                                .contract_hash = contract_hash_},
                                               watch));
  if (const auto known = cache_.find(key)) {
    build.artifact = *known;
  } else {
    ASSIGN_OR_RETURN(CacheDraft draft, cache_.start());
    ASSIGN_OR_RETURN(Built built, compile_watched(draft.folder(), watched, watch));
    built.artifact.key = key;
    built.artifact.log = printable(built.artifact.log);
    built.artifact.reason = printable(built.artifact.reason);
    if (built.repeatable) {
      ASSIGN_OR_RETURN(build.artifact, cache_.keep(std::move(draft), std::move(built.artifact)));
    } else {
      build.artifact = std::move(built.artifact);
    }
  }
  show_name(build.artifact, request.source_name);
  return build;
}

Result<Built> GccCompiler::compile_watched(const fs::path& folder, const BuildRequest& request,
                                           Watch watch) {
  ASSIGN_OR_RETURN(ProcessOutcome compiled, compile_object(folder, request));
  if (compiled.exit_code != 0) return not_built(std::move(compiled), options_.limits);
  // What the sanitizer's calls are bound to is in the host.
  Words arguments = {"-shared", "-o", BuildCache::kModuleName, kObjectName};
  append(arguments, watch_flags(watch));
  ASSIGN_OR_RETURN(ProcessOutcome linked,
                   run(std::move(arguments), folder, {}, urgency_of(request.link)));
  if (linked.exit_code != 0) return not_built(std::move(linked), options_.limits);
  ASSIGN_OR_RETURN(const std::string module, read_file(folder / BuildCache::kModuleName));
  return Built{.artifact = {.verdict = Verdict::accepted,
                            .log = compiled.output + linked.output,
                            .object_hash = hash_of_code(module)}};
}

Result<Built> GccCompiler::compile_in(const fs::path& folder, const BuildRequest& request) {
  if (language_of(request.source_name) == SourceLanguage::cuda) {
    ASSIGN_OR_RETURN(const CudaBuild* const build, cuda());
    return build->build_candidate(folder, request);
  }
  ASSIGN_OR_RETURN(ProcessOutcome outcome, compile_object(folder, request));
  if (outcome.exit_code != 0) return not_built(std::move(outcome), options_.limits);
  ASSIGN_OR_RETURN(const std::string object, read_file(folder / kObjectName));
  if (const auto refusal = find_object_refusal(object);
      refusal && defence_is_on(Defence::object_rules))
    return refused(refusal->text(), std::move(outcome.output));
  ASSIGN_OR_RETURN(Built built, link_in(folder, request.link, std::move(outcome.output)));
  for (const char* done : {kSourceName, kObjectName}) {
    std::error_code ignored;
    fs::remove(folder / done, ignored);
  }
  return built;
}

Result<Built> GccCompiler::link_in(const fs::path& folder, const Words& libraries,
                                   std::string log) const {
  Words arguments = {"-o", BuildCache::kModuleName, kObjectName};
  append(arguments, link_flags(libraries));
  ASSIGN_OR_RETURN(ProcessOutcome outcome,
                   run(std::move(arguments), folder, {}, urgency_of(libraries)));
  outcome.output = log + outcome.output;
  if (outcome.exit_code != 0) return not_built(std::move(outcome), options_.limits);
  ASSIGN_OR_RETURN(const std::string module, read_file(folder / BuildCache::kModuleName));
  if (const auto refusal = find_module_refusal(module, libraries);
      refusal && defence_is_on(Defence::object_rules))
    return refused(refusal->text(), std::move(outcome.output));
  return Built{.artifact = {.verdict = Verdict::accepted,
                            .log = std::move(outcome.output),
                            .object_hash = hash_of_code(module)}};
}

Result<fs::path> GccCompiler::build_problem(const fs::path& code) {
  const fs::path source = fs::absolute(code);
  if (language_of(source.string()) == SourceLanguage::cuda) return build_cuda_problem(source);
  const fs::path home = source.parent_path();
  ASSIGN_OR_RETURN(const std::string text, read_file(source));
  ASSIGN_OR_RETURN(const std::string headers, hash_folder(home, {".h"}));
  Words flags = language_flags();
  append(flags, link_flags({}));
  Hasher hasher;
  hasher.field("problem 1").field(text).field(headers);
  hash_surroundings(hasher, flags);
  const std::string key = hasher.hex();
  if (const auto known = cache_.find(key)) return known->module;

  ASSIGN_OR_RETURN(CacheDraft draft, cache_.start());
  append(flags, {source.string(), "-o", (draft.folder() / BuildCache::kModuleName).string()});
  ASSIGN_OR_RETURN(
      ProcessOutcome outcome,
      run(std::move(flags), draft.folder(), {home, options_.contract_include}, Urgency::awaited));
  Built built =
      outcome.exit_code != 0
          ? not_built(std::move(outcome), options_.limits)
          : Built{.artifact = {.verdict = Verdict::accepted, .log = std::move(outcome.output)}};
  built.artifact.key = key;
  return keep_problem(std::move(draft), source, std::move(built));
}

Result<fs::path> GccCompiler::build_cuda_problem(const fs::path& source) {
  ASSIGN_OR_RETURN(const CudaBuild* const build, cuda());
  ASSIGN_OR_RETURN(const std::string text, read_file(source));
  ASSIGN_OR_RETURN(const std::string headers, hash_folder(source.parent_path(), {".h", ".cuh"}));
  Hasher hasher;
  hasher.field("cuda problem 1").field(text).field(headers);
  hash_cuda(hasher, *build);
  const std::string key = hasher.hex();
  if (const auto known = cache_.find(key)) return known->module;

  ASSIGN_OR_RETURN(CacheDraft draft, cache_.start());
  ASSIGN_OR_RETURN(Built built, build->build_problem(draft.folder(), source));
  built.artifact.key = key;
  return keep_problem(std::move(draft), source, std::move(built));
}

Result<fs::path> GccCompiler::keep_problem(CacheDraft draft, const fs::path& source, Built built) {
  if (built.artifact.verdict != Verdict::accepted)
    return Error{ErrorCode::bad_input, "compile " + source.string(),
                 built.artifact.reason + "\n" + built.artifact.log, "correct the problem's code"};
  built.artifact.log = printable(built.artifact.log);
  ASSIGN_OR_RETURN(const Artifact kept, cache_.keep(std::move(draft), std::move(built.artifact)));
  return kept.module;
}

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::make(Options options) {
  options.contract_include = fs::absolute(options.contract_include);
  options.cache = fs::absolute(options.cache);
  std::error_code trouble;
  fs::create_directories(options.cache, trouble);
  if (trouble)
    return Error{ErrorCode::io, "make the build cache " + options.cache.string(), trouble.message(),
                 "check free space and permissions, or choose another cache with XDG_CACHE_HOME"};
  ASSIGN_OR_RETURN(Toolchain toolchain, find_toolchain(options.command, options.march));
  ASSIGN_OR_RETURN(std::string contract_hash, hash_folder(options.contract_include, {".h"}));
  CompilerSandbox sandbox = CompilerSandbox::detect({toolchain.prefix()});
  auto compiler = std::make_unique<GccCompiler>(std::move(options), std::move(toolchain),
                                                std::move(sandbox), std::move(contract_hash));
  if (const auto prelude = compiler->prelude_for({}); !prelude.ok()) return prelude.error();
  return std::unique_ptr<Compiler>(std::move(compiler));
}

}  // namespace kbeam
