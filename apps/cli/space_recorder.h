// Keeps every judged setting: a line each in FILE.partial while tuning goes on, so that a run that
// was stopped goes on where it was; FILE itself, a packed recorded space, at the end.
#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "apps/cli/setting_bench.h"
#include "base/json.h"

namespace kbeam::cli {

class SpaceRecorder {
 public:
  // Reads FILE.partial when it is there; one of another file, problem, case or space is refused.
  static Result<SpaceRecorder> open(const std::filesystem::path& file, const SettingBench& bench);

  // What an earlier run found; its samples are not kept in memory.
  const JudgedSetting* find(const KnobValues& knobs) const;
  std::size_t size() const { return settings_.size(); }

  // Durable when it returns. A setting that our own trouble ended is not recorded.
  Result<void> add(const JudgedSetting& judged);
  // Writes FILE, and removes FILE.partial when `complete`.
  Result<void> write_space(const SettingBench& bench, bool complete) const;

 private:
  struct Line {
    JudgedSetting judged;
    // By case, every sample.
    std::vector<std::vector<double>> candidate_ns;
    std::vector<std::vector<double>> reference_ns;
  };
  Result<void> read_lines(const std::string& text);

  std::filesystem::path file_;
  std::filesystem::path partial_;
  std::vector<Line> settings_;
  std::map<KnobValues, std::size_t> index_;
};

}  // namespace kbeam::cli
