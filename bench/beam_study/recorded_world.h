// A recorded campaign as a landscape: its families, the knob values that it tried, and the speeds
// that it measured. A setting that it did not try gets the mean of those near it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "bench/beam_study/world.h"

namespace kbeam {

struct RecordedAttempt {
  std::string family;
  KnobValues knobs;
  Verdict verdict = Verdict::accepted;
  std::map<std::string, double> speedup;
};

struct RecordedCampaign {
  std::string name;
  std::vector<RecordedAttempt> attempts;  // in order
};

// One JSON object a line, as record_campaigns writes them.
Result<RecordedCampaign> load_recorded_campaign(const std::filesystem::path& file);

// The first attempt of a family holds its defaults. The seed says nothing here: the world is one.
World make_recorded_world(std::shared_ptr<const RecordedCampaign> campaign);

}  // namespace kbeam
