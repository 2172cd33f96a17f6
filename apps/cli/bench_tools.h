// What the commands on one problem share: loading it, compiling it, and a judge for it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/result.h"
#include "loop/activity.h"
#include "loop/build_queue.h"
#include "loop/target_tools.h"
#include "model/campaign.h"
#include "model/problem.h"

namespace kbeam::cli {

// Prints the error (as JSON on stdout with --json, else on stderr) and returns the exit code that
// fits it.
int report_error(const Error& error, const Options& options);

// "180s", "3m", "1.5h", "90": seconds.
Result<double> parse_duration(const std::string& text, const std::string& option);
Result<std::uint64_t> parse_number(const std::string& text, const std::string& option);
// How many: a whole number from 1 to `most`.
Result<int> parse_count(const std::string& text, const std::string& option,
                        int most = 1'000'000'000);

// A folder or a name, as `target` sees it; every mistake in problem.toml comes back in one error.
Result<Problem> open_problem(const std::string& named, const Home& home,
                             const std::string& target = "cpu");
// The problem of a recorded run, whose code is about to be built and run here. A run folder may
// come from anybody, so its archive is believed only where it names a problem of this installation;
// another folder has to be named now, with --problem.
Result<Problem> problem_of_run(const CampaignConfig& recorded, const Options& options,
                               const Home& home);
// The named grade of the problem, its default when empty.
Result<std::string> choose_grade(const Problem& problem, const std::string& named);

// Which CPU judges and which run candidates: the last allowed CPU first, so that CPU 0, where the
// system's own interrupts land, is the judge's.
struct CpuShare {
  int judge = 0;
  std::vector<int> candidates;
};
const CpuShare& share_cpus();

struct BenchTools {
  Home home;
  Problem problem;
  std::string grade;
  SystemClock clock;
  std::unique_ptr<ActivityMeter> meter;
  TargetTools target;
  std::unique_ptr<BuildQueue> builds;

  // Reads FILE and --knob NAME=VALUE into a candidate of one row.
  Result<Candidate> read_candidate(const std::string& file,
                                   const std::vector<std::string>& knobs) const;
};
struct BenchRequest {
  std::string problem;
  std::string target = "cpu";
  std::string grade;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> key;  // replays one recorded input
  bool builds_give_way = false;      // to measurements: for builds ahead of the judge
};
Result<std::unique_ptr<BenchTools>> open_bench_tools(const BenchRequest& request);

// The options that check, bench and compare have in common.
std::vector<OptionSpec> candidate_options();

}  // namespace kbeam::cli
