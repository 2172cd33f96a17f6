// Candidate source -> shared object, with a content-addressed cache, a precompiled prelude and hard
// limits. The compiler runs sandboxed in a folder that holds nothing but the source and the
// contract headers. A .cu goes to nvcc, everything else to the C++ compiler.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/candidate.h"
#include "model/problem.h"
#include "model/watch.h"

namespace kbeam {

struct BuildRequest {
  std::string source;
  std::string source_name;  // for messages; ".cu" at its end makes it CUDA
  KnobValues knobs;
  std::vector<std::string> flags;  // Problem::compile_flags; nvcc takes the macros among them
  std::vector<std::string> link;   // baselines only
};

struct BuildLimits {
  double timeout_s = 60;
  std::int64_t memory_bytes = 4LL << 30;
  std::int64_t output_bytes = 64LL << 20;
};

class Compiler {
 public:
  struct Options {
    std::filesystem::path contract_include;
    std::filesystem::path cache;  // shared by all kbeam on this machine; safe under concurrency
    std::string command = "g++";
    std::string march = "native";
    std::string cuda_command = "nvcc";
    std::vector<std::string> cuda_architectures = {"90a"};  // as nvcc names them: "80", "90a"
    BuildLimits limits;
    BuildLimits cuda_limits{.timeout_s = 180, .memory_bytes = 16LL << 30};
    // SCHED_IDLE for candidates: their builds give way to a measurement. What everything waits for
    // (the problem, baselines, the prelude) is built at normal priority.
    bool idle_priority = false;
    std::function<bool()>
        cancelled;  // true ends a build that is under way: its result is not wanted any more
  };
  // Finds the compiler, asks its version, and builds the prelude for this version and these flags.
  // nvcc is looked for when the first .cu comes: a machine without it builds everything else.
  static Result<std::unique_ptr<Compiler>> make(Options options);
  virtual ~Compiler() = default;

  // A candidate that does not build is an Artifact with a verdict; Result fails only when the
  // engine cannot work.
  virtual Result<Artifact> build(const BuildRequest& request) = 0;
  // The same source so that a sanitizer observes it, for a promotion (.cpp only). It must have
  // passed build(): there are no rules on the object here, and it never runs where a time counts.
  virtual Result<WatchedBuild> build_watched(const BuildRequest& request, Watch watch) = 0;
  // problem.cpp or problem.cu -> shared object; compile errors are the user's and come back as an
  // Error with the log.
  virtual Result<std::filesystem::path> build_problem(const std::filesystem::path& code) = 0;

  virtual const std::string& version() const = 0;
  // nvcc's, or why there is none.
  virtual Result<std::string> cuda_version() = 0;
  virtual std::vector<std::string> candidate_flags() const = 0;
  // What of the confinement of compiler runs this machine does not give, in words.
  virtual std::vector<std::string> weaknesses() const = 0;
};

}  // namespace kbeam
