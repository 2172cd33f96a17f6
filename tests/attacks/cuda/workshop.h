// Builds and plans the candidates of the device corpus with the engine that this is linked to, the
// one that ships or the weakened one, and writes what is left to do on a GPU as task folders.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "attacks/cuda/corpus.h"
#include "attacks/cuda/manifest.h"
#include "base/result.h"
#include "build/compiler.h"
#include "model/problem.h"
#include "problem/problem_library.h"
#include "session/task_assembly.h"

namespace kbeam::device_attacks {

struct WorkshopOptions {
  std::filesystem::path source;  // the tree
  std::filesystem::path planner;
  std::filesystem::path cache;
};

// One candidate and what is to be done with it.
struct Job {
  std::string name;  // of its task folder
  std::filesystem::path file;
  int deed = 1;  // 2: the misdeed
  How stage = How::check;
  std::string reference;  // for a gain
  int pairs = 8;
  double call_timeout_s = 10;
  double plan_timeout_s = 10;
  double plan_memory_bytes = 2e9;
  const Mutant* mutant = nullptr;  // of the check
};

Job job_of(const Attack& attack, const std::filesystem::path& folder);
Job twin_of(const Attack& attack, const std::filesystem::path& folder);
Job job_of(const Honest& honest, const std::filesystem::path& folder);

class Workshop {
 public:
  static Result<std::unique_ptr<Workshop>> open(const WorkshopOptions& options);

  // Safe from several threads.
  Result<Artifact> build(const std::filesystem::path& file);
  // Builds and plans. Whatever is not refused there becomes a folder below `tasks`; a job of stage
  // plan is accepted.
  Result<Trial> prepare(const Job& job, const std::filesystem::path& tasks);

 private:
  explicit Workshop(WorkshopOptions options) : options_(std::move(options)) {}
  std::filesystem::path folder() const { return options_.source / "tests/attacks/cuda"; }
  Result<CudaSubject> reference_of(const Job& job);
  Result<std::filesystem::path> build_check(const Mutant* mutant);
  Result<TaskRequest> request_of(const Job& job, const CudaSubject& candidate);

  WorkshopOptions options_;
  Problem problem_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<ProblemLibrary> library_;
  std::filesystem::path problem_module_;
};

}  // namespace kbeam::device_attacks
