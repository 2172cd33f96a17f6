#include "loop/pace.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "archive/archive.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRunsLookedAt = 30;
constexpr int kLeastEvaluations = 5;  // fewer tell no pace

std::string about(double seconds) {
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  return seconds < 6000 ? fmt::format("{:.0f} s", seconds)
                        : fmt::format("{:.1f} h", seconds / 3600);
}

std::optional<EarlierRun> read_run(const fs::path& folder, const CampaignConfig& config) {
  const auto archive = Archive::open_read_only(folder / "archive.sqlite");
  if (!archive.ok()) return std::nullopt;
  const CampaignConfig then = (*archive)->config();
  if (then.problem_hash != config.problem_hash || then.target != config.target) return std::nullopt;
  const auto ended = (*archive)->last_event("stop");
  if (!ended.ok() || !*ended) return std::nullopt;
  const Json& summary = **ended;
  const int evaluations = summary.value("evaluations", 0);
  const Json a_minute = summary.value("evaluations_per_minute", Json());
  if (evaluations < kLeastEvaluations || !a_minute.is_number() || a_minute.get<double>() <= 0)
    return std::nullopt;
  EarlierRun run{.run_id = then.run_id, .pace = {}};
  run.pace.evaluation_s = 60 / a_minute.get<double>();
  const double wall_s = summary.value("wall_s", 0.0);
  run.pace.rest_s = std::max(0.0, wall_s - run.pace.evaluation_s * evaluations);
  if (const double device_s = summary.value("device_s", 0.0); device_s > 0 && wall_s > 0)
    run.pace.evaluation_device_s = run.pace.evaluation_s * std::min(1.0, device_s / wall_s);
  return run;
}

int whole(double count) {
  return static_cast<int>(std::clamp(count, 0.0, 1e9));
}

}  // namespace

std::optional<EarlierRun> find_earlier_run(const fs::path& runs, const CampaignConfig& config) {
  std::vector<fs::path> folders;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(runs, trouble)) folders.push_back(entry.path());
  std::sort(folders.rbegin(), folders.rend());  // ids begin with their date
  if (folders.size() > kMostRunsLookedAt) folders.resize(kMostRunsLookedAt);
  for (const fs::path& folder : folders)
    if (auto run = read_run(folder, config)) return run;
  return std::nullopt;
}

Pace pace_of(const BaselineFacts& baseline, const StoppingRule& screen, double reserve_s) {
  const int calls = 1 + screen.pairs_per_process;  // the first is not timed
  Pace pace{.evaluation_s =
                baseline.control_s / baseline.control_calls * calls * process_count(screen)};
  pace.evaluation_device_s = pace.evaluation_s;
  pace.rest_s = reserve_s;
  return pace;
}

std::string describe_room(const Pace& pace, const BudgetUse& use, const Budget& limits) {
  if (pace.evaluation_s <= 0) return "the pace is not known";
  std::string text = "an evaluation takes about " + about(pace.evaluation_s);
  if (pace.evaluation_device_s > 0 && pace.evaluation_device_s < pace.evaluation_s)
    text += " (" + about(pace.evaluation_device_s) + " of the device)";
  text += ", all around them " + about(pace.rest_s);
  if (const double most_s = limits.wall_s; most_s > 0)
    text += fmt::format("; --budget has room for about {}",
                        whole((most_s - use.wall_s - pace.rest_s) / pace.evaluation_s));
  if (limits.device_s > 0 && pace.evaluation_device_s > 0) {
    const double rest_s = pace.rest_s * pace.evaluation_device_s / pace.evaluation_s;
    text +=
        fmt::format("; --device-time for about {}",
                    whole((limits.device_s - use.device_s - rest_s) / pace.evaluation_device_s));
  }
  if (const int left = limits.evaluations - use.evaluations; limits.evaluations > 0)
    text += fmt::format("; the {} left of --evaluations take about {}", std::max(0, left),
                        about(std::max(0, left) * pace.evaluation_s + pace.rest_s));
  return text;
}

}  // namespace kbeam
