// Builds and judges one candidate of the corpus with the engine that this is linked to: the one
// that ships, or the weakened one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "attacks/manifest.h"
#include "base/clock.h"
#include "base/result.h"
#include "build/compiler.h"
#include "model/problem.h"
#include "problem/problem_library.h"

namespace kbeam::attacks {

struct Finding {
  std::string verdict;
  std::string reason;
};

struct BenchOptions {
  std::filesystem::path source;  // the tree
  std::filesystem::path runner;
  std::filesystem::path cache;
};

struct Job {
  std::filesystem::path file;
  KnobValues knobs;
  Limits limits;
  How stage = How::check;
};

Job job_of(const Attack& attack, const std::filesystem::path& folder);
Job twin_of(const Attack& attack, const std::filesystem::path& folder);

class Bench {
 public:
  static Result<std::unique_ptr<Bench>> open(const BenchOptions& options);

  // Safe from several threads.
  Result<Artifact> build(const Job& job);
  // The evaluation on the problem, or on a mutant of its checker; trouble of the engine is a
  // finding too.
  Finding judge(const Job& job, ProblemLibrary* mutant = nullptr);
  // problem.cpp with one line changed.
  Result<std::unique_ptr<ProblemLibrary>> build_mutant(const Mutant& mutant);

 private:
  explicit Bench(BenchOptions options) : options_(std::move(options)) {}
  Result<Row> row_for(const Job& job) const;
  BuildRequest request_for(const Row& row) const;
  Result<std::unique_ptr<Compiler>> make_compiler(const Limits& limits) const;
  Finding evaluate(const Job& job, const std::filesystem::path& module, ProblemCode& code);

  BenchOptions options_;
  SystemClock clock_;
  Problem problem_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<ProblemLibrary> library_;
  std::filesystem::path baseline_;
};

}  // namespace kbeam::attacks
