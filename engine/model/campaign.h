// Campaign: one run of the loop, as configured and as it stands. Environment: the machine it ran
// on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

struct Environment {
  std::string cpu;  // model name
  int cpus = 0;
  std::vector<std::string> instruction_sets;  // avx2, avx512f, ...
  std::string kernel;
  std::string compiler;  // "g++ (Debian 12.2.0) 12.2.0"
  std::vector<std::string> compile_flags;
  std::string tool_version;
  std::map<std::string, std::string> libraries;  // "openblas" -> "0.3.21 SkylakeX"
};

struct Budget {  // 0: no limit
  double wall_s = 0;
  int evaluations = 0;
  double device_s = 0;      // in which the judge has the device: the GPU, or the CPUs of candidates
  std::int64_t tokens = 0;  // of language models, in and out
  double money = 0;         // in the currency of the models' prices
};

struct CampaignConfig {
  std::string run_id;
  std::string problem_name;
  std::string problem_folder;
  std::string problem_hash;
  std::string target = "cpu";
  std::string proposer = "builtin";
  std::string grade;  // one of the problem's
  std::string goal;   // as typed; empty: none
  Budget budget;
  std::uint64_t seed = 0;
  std::string search = "beam";  // or "random", the yardstick of a search
  int beam = 4;                 // families kept
  int threads = 1;
  std::vector<int> candidate_cpus;
  int judge_cpu = 0;
};

enum class Role { exploit, near_miss, structural };
std::string_view to_string(Role role);

// A line of candidates that share one structural idea; the unit of the beam.
struct FamilyState {
  std::string name;
  std::string text;
  Role role = Role::structural;
  int evaluations = 0;
  int accepted = 0;
  int since_gain = 0;          // evaluations since its last gain
  std::string best_candidate;  // by screening geometric mean
  double best_speedup = 0;     // against the baseline, geometric mean over timed cases
  std::map<std::string, double> best_per_case;
  bool retired = false;
  std::string retired_why;
};

// The incumbent of one regime (one timed case): confirmed, not merely screened.
struct Champion {
  std::string case_name;
  std::string candidate_id;
  std::string family;
  double speedup = 0;  // against the baseline, as confirmed
  double low = 0;
  double high = 0;
  int version = 0;  // raised each time the champion changes
};

enum class StopReason {
  running,
  budget_wall,
  budget_evaluations,
  budget_device,
  budget_tokens,
  budget_money,
  goal_met,
  asked_to_stop,
  exhausted,
  failed
};
std::string_view to_string(StopReason reason);

}  // namespace kbeam
