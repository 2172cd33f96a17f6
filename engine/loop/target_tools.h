// What a campaign or a command needs of one target: a compiler, the problem's own code, and a judge
// that runs candidates there. The only place that knows how targets differ.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"
#include "build/compiler.h"
#include "model/problem.h"
#include "problem/problem_library.h"
#include "session/judge.h"

namespace kbeam {

struct TargetRequest {
  const Problem& problem;  // as this target sees it; must outlive the tools
  const Home& home;
  const Clock& clock;
  std::string target = "cpu";
  std::filesystem::path cache;
  std::string grade;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> fixed_key;  // replays one recorded input in check()
  std::vector<int> candidate_cpus{0};
  int device = 0;                 // of the GPU
  bool builds_give_way = false;   // to measurements
  double screen_timeout_s = 600;  // the longest that one screen may take
  std::function<bool()> builds_cancelled;
  std::function<bool()> give_up;  // asked between calls: true ends the evaluation in hand
  std::function<void(std::string_view)> say;  // what a long evaluation is at, a line each
  std::function<void(const std::string& holder)> on_lock_wait;
};

struct TargetTools {
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<ProblemLibrary> library;
  std::unique_ptr<Judge> judge;
};

Result<TargetTools> open_target(const TargetRequest& request);

// "cuda" for FILE.cu, else "cpu".
std::string target_of_file(const std::filesystem::path& file);

}  // namespace kbeam
