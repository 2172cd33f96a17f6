// What a run has used and what it may use, from its archive alone: for whoever looks at it or goes
// on with it. Observations and usage events say it; the newest counts.
#pragma once

#include "archive/archive.h"
#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"

namespace kbeam {

// What a campaign has used, all its lives together.
struct Used {
  int screened = 0;
  double used_s = 0;
  double busy_s = 0;    // with a build, a check or a measurement under way
  double device_s = 0;  // in which the judge has the device
};
Json to_json(const Used& used);
// Of an observation or a usage event; `screened` is -1 where an older kbeam wrote none.
Used used_from_json(const Json& body);

inline constexpr char kUsageEvent[] = "usage";
Json usage_event(const Used& used, const Budget& limits);

struct RunUsage {
  Used used;
  Budget limits;  // those of its beginning, or what `resume` and `fork` made of them
};
Result<RunUsage> run_usage_of(const Archive& archive);

}  // namespace kbeam
