// nvcc: a .cu to a shared object that holds the fat binary and the plan function, free of the CUDA
// runtime. Steps and rules of one build; the cache and the rules on source text are the compiler's
// (compiler.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "build/compiler.h"
#include "build/compiler_run.h"
#include "build/compiler_sandbox.h"
#include "build/toolchain.h"

namespace kbeam {

class CudaBuild {
 public:
  struct Options {
    std::string command = "nvcc";
    std::vector<std::string> architectures = {"90a"};
    std::filesystem::path contract_include;
    BuildLimits limits;
    bool idle_priority = false;
    std::function<bool()> cancelled;
  };
  // `host` compiles the host half. An architecture that this nvcc does not know is an Error.
  static Result<CudaBuild> make(Options options, Toolchain host);

  static constexpr char kCandidateName[] = "candidate.cu";  // in logs; the same for all

  const std::string& version() const { return nvcc_.version; }
  // All that decides a build beside sources and headers.
  void hash_surroundings(Hasher& hasher) const;

  // Both leave kModuleName of the build cache in `folder`, and nothing else.
  Result<Built> build_candidate(const std::filesystem::path& folder,
                                const BuildRequest& request) const;
  // Trusted code: no rules. Exports the generator and the checker that it has.
  Result<Built> build_problem(const std::filesystem::path& folder,
                              const std::filesystem::path& source) const;

 private:
  enum class Rules { candidate, none };
  struct Compile {
    std::filesystem::path work;          // where it runs; below the build's folder
    std::vector<std::string> arguments;  // what to compile, and its macros
    std::vector<std::filesystem::path> read;
    std::string name;                  // of the source, without its folder
    std::vector<std::string> entries;  // what the module exports
    Rules rules = Rules::candidate;
  };

  CudaBuild(Options options, Toolchain nvcc, Toolchain host, CompilerSandbox sandbox)
      : options_(std::move(options)),
        nvcc_(std::move(nvcc)),
        host_(std::move(host)),
        sandbox_(std::move(sandbox)) {}

  std::vector<std::string> language_flags() const;
  Result<Built> compile_in(const std::filesystem::path& folder, const Compile& compile) const;
  Result<Built> link_in(const std::filesystem::path& folder, const Compile& compile,
                        Built built) const;
  Result<ProcessOutcome> run(const Toolchain& tool, std::vector<std::string> arguments,
                             const std::filesystem::path& folder, const Compile& compile) const;

  Options options_;
  Toolchain nvcc_;
  Toolchain host_;
  CompilerSandbox sandbox_;
};

// "90a" for compute capability 9.0: what nvcc builds for the device with this architecture number.
// From 9.0 on the instructions of that one architecture are used.
std::string cuda_architecture(int architecture);

}  // namespace kbeam
