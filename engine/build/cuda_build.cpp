#include "build/cuda_build.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/defence.h"
#include "base/files.h"
#include "base/process.h"
#include "build/build_cache.h"
#include "build/object_rules.h"
#include "build/ptxas_report.h"
#include "build/source_rules.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr char kWorkFolder[] = "work";
constexpr char kObjectName[] = "candidate.o";
constexpr char kExportsName[] = "exports";
// ptxas says some 500 bytes about each kernel.
constexpr std::size_t kReportBytes = 8 << 20;
constexpr std::size_t kLogBytes = 64 << 10;

void append(Words& to, const Words& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool is_architecture(std::string_view name) {
  if (name.ends_with('a') || name.ends_with('f')) name.remove_suffix(1);
  return name.size() >= 2 && name.size() <= 3 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What people should read of a compiler's log: not the report, which Artifact::kernels holds.
std::string without_report(std::string_view log) {
  std::string text;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, std::min(log.find('\n'), log.size()));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    const bool is_report = line.starts_with("ptxas info") ||
                           line.find("bytes stack frame, ") != std::string_view::npos;
    if (is_report || line.empty()) continue;
    text.append(line).append("\n");
    if (text.size() > kLogBytes) return text + "(more is left out)\n";
  }
  return text;
}

// nvcc splits macros at commas.
std::string macro(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string exports_script(const Words& entries) {
  std::string script = "{\n  global:\n";
  for (const std::string& entry : entries) script += "    " + entry + ";\n";
  return script + "  local: *;\n};\n";
}

Result<void> check_architectures(const Toolchain& nvcc, const Words& architectures) {
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_process({.command = {nvcc.program.string(), "--list-gpu-code"},
                                .environment = nvcc.environment("/tmp"),
                                .timeout_s = 30}));
  for (const std::string& architecture : architectures) {
    std::string plain = architecture;
    if (plain.ends_with('a') || plain.ends_with('f')) plain.pop_back();
    if (is_architecture(architecture) &&
        outcome.output.find("sm_" + plain + "\n") != std::string::npos)
      continue;
    std::string known = outcome.output;
    std::replace(known.begin(), known.end(), '\n', ' ');
    return Error{ErrorCode::bad_input, "build for the GPU architecture " + architecture,
                 nvcc.version + " does not know it", "choose among " + known};
  }
  return {};
}

}  // namespace

std::string cuda_architecture(int architecture) {
  return std::to_string(architecture) + (architecture >= 90 ? "a" : "");
}

Result<CudaBuild> CudaBuild::make(Options options, Toolchain host) {
  ASSIGN_OR_RETURN(Toolchain nvcc, find_cuda_toolchain(options.command));
  RETURN_IF_ERROR(check_architectures(nvcc, options.architectures));
  CompilerSandbox sandbox = CompilerSandbox::detect({nvcc.prefix(), host.prefix()});
  return CudaBuild(std::move(options), std::move(nvcc), std::move(host), std::move(sandbox));
}

Words CudaBuild::language_flags() const {
  // nvcc's -O is the host compiler's alone: a plan needs little of it, kernels are always
  // optimised.
  Words flags = {"-std=c++20",
                 "-O1",
                 "-cudart",
                 "none",
                 "--resource-usage",
                 "--expt-relaxed-constexpr",
                 "--no-compress",
                 "-frandom-seed=kbeam",
                 "-Xcompiler",
                 "-fPIC,-fvisibility=hidden",
                 "-I",
                 options_.contract_include.string(),
                 "-ccbin",
                 host_.program.string()};
  // Names in anonymous namespaces carry a hash of the source's path: one path for all makes equal
  // sources equal kernels.
  for (const char* pass : {"-Xcudafe", "-Xcicc"})
    append(flags, {pass, "--orig_src_path_name,/kbeam/candidate.cu"});
  for (const std::string& architecture : options_.architectures)
    flags.push_back("-gencode=arch=compute_" + architecture + ",code=sm_" + architecture);
  return flags;
}

void CudaBuild::hash_surroundings(Hasher& hasher) const {
  const Words flags = language_flags();
  hasher.field(nvcc_.version).field(host_.version);
  hasher.field(static_cast<std::int64_t>(flags.size()));
  for (const std::string& flag : flags) hasher.field(flag);
}

Result<Built> CudaBuild::build_candidate(const fs::path& folder,
                                         const BuildRequest& request) const {
  Compile compile{.work = folder / kWorkFolder,
                  .arguments = {kCandidateName},
                  .name = kCandidateName,
                  .entries = {kEntrySymbol}};
  std::error_code trouble;
  fs::create_directory(compile.work, trouble);
  RETURN_IF_ERROR(write_file(compile.work / kCandidateName, request.source));
  for (const std::string& flag : request.flags)
    if (flag.starts_with("-D")) compile.arguments.push_back(macro(flag));
  for (const auto& [name, value] : request.knobs)
    compile.arguments.push_back(macro("-DKBEAM_SET_" + name + "=~," + value));
  return compile_in(folder, compile);
}

Result<Built> CudaBuild::build_problem(const fs::path& folder, const fs::path& source) const {
  const Compile compile{.work = folder / kWorkFolder,
                        .arguments = {source.string()},
                        .read = {source.parent_path()},
                        .name = source.filename().string(),
                        .entries = {"kbeam_generate_plan", "kbeam_check_plan"},
                        .rules = Rules::none};
  std::error_code trouble;
  fs::create_directory(compile.work, trouble);
  return compile_in(folder, compile);
}

Result<ProcessOutcome> CudaBuild::run(const Toolchain& tool, Words arguments,
                                      const fs::path& folder, const Compile& compile) const {
  CompilerRun request{.arguments = std::move(arguments),
                      .folder = folder,
                      .read = compile.read,
                      .start_in = compile.work,
                      .limits = options_.limits,
                      .idle_priority = options_.idle_priority && compile.rules == Rules::candidate,
                      .cancelled = options_.cancelled,
                      .log_bytes = kReportBytes};
  request.read.push_back(options_.contract_include);
  return run_compiler(tool, sandbox_, request);
}

Result<Built> CudaBuild::compile_in(const fs::path& folder, const Compile& compile) const {
  Words arguments = language_flags();
  append(arguments, {"-c", "-o", kObjectName, "--keep", "--keep-dir", "."});
  append(arguments, compile.arguments);
  ASSIGN_OR_RETURN(ProcessOutcome outcome, run(nvcc_, std::move(arguments), folder, compile));
  const std::string report = std::exchange(outcome.output, without_report(outcome.output));
  if (outcome.exit_code != 0) return not_built(std::move(outcome), options_.limits);

  Built built{.artifact = {.verdict = Verdict::accepted, .log = std::move(outcome.output)}};
  built.artifact.kernels = read_ptxas_report(report);
  for (const fs::directory_entry& entry : fs::directory_iterator(compile.work)) {
    const std::string left = entry.path().filename().string();
    if (left.ends_with(".ptx")) {
      ASSIGN_OR_RETURN(const std::string ptx, read_file(entry.path()));
      read_launch_bounds(ptx, built.artifact.kernels);
    } else if (left.ends_with(".cudafe1.cpp") && compile.rules == Rules::candidate) {
      ASSIGN_OR_RETURN(const std::string host_half, read_file(entry.path()));
      if (const auto refusal = find_host_assembly(host_half, compile.name);
          refusal && defence_is_on(Defence::source_rules))
        return refused(compile.name + ":" + std::to_string(refusal->line) + ": " + refusal->text(),
                       std::move(built.artifact.log));
    }
  }
  if (compile.rules == Rules::candidate) {
    ASSIGN_OR_RETURN(const std::string object, read_file(compile.work / kObjectName));
    if (const auto refusal = find_object_refusal(object, SourceLanguage::cuda);
        refusal && defence_is_on(Defence::object_rules))
      return refused(refusal->text(), std::move(built.artifact.log));
  }
  ASSIGN_OR_RETURN(built, link_in(folder, compile, std::move(built)));
  std::error_code ignored;
  fs::remove_all(compile.work, ignored);
  return built;
}

// By the C++ compiler: with nothing of CUDA to link there is nothing for nvcc to do. Symbols are
// stripped because nvcc leaves the names of its temporary files among them.
Result<Built> CudaBuild::link_in(const fs::path& folder, const Compile& compile,
                                 Built built) const {
  RETURN_IF_ERROR(write_file(compile.work / kExportsName, exports_script(compile.entries)));
  const fs::path module = folder / BuildCache::kModuleName;
  ASSIGN_OR_RETURN(ProcessOutcome outcome, run(host_,
                                               {"-shared", "-o", module.string(), kObjectName,
                                                std::string("-Wl,--version-script=") + kExportsName,
                                                "-Wl,--as-needed", "-Wl,--build-id=none", "-Wl,-s"},
                                               folder, compile));
  if (outcome.exit_code != 0) return not_built(std::move(outcome), options_.limits);
  ASSIGN_OR_RETURN(const std::string content, read_file(module));
  if (const auto missing = find_unresolved(content)) {
    built.artifact.verdict = Verdict::build_failed;
    built.artifact.reason = "undefined reference to '" + *missing + "'";
    built.artifact.log += built.artifact.reason + "\n";
    return built;
  }
  if (const auto refusal = find_module_refusal(content, {}, SourceLanguage::cuda);
      refusal && compile.rules == Rules::candidate && defence_is_on(Defence::object_rules))
    return refused(refusal->text(), std::move(built.artifact.log));
  built.artifact.object_hash = hash_of_code(content);
  return built;
}

}  // namespace kbeam
