#include "loop/run_usage.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "model/json_forms.h"

namespace kbeam {

Json to_json(const Used& used) {
  return {{"screened", used.screened},
          {"used_s", used.used_s},
          {"busy_s", used.busy_s},
          {"device_s", used.device_s}};
}

Used used_from_json(const Json& body) {
  return {.screened = body.value("screened", -1),
          .used_s = body.at("used_s").get<double>(),
          .busy_s = body.at("busy_s").get<double>(),
          .device_s = body.value("device_s", 0.0)};
}

Json usage_event(const Used& used, const Budget& limits) {
  Json body = to_json(used);
  body["limits"] = {{"wall_s", limits.wall_s},
                    {"evaluations", limits.evaluations},
                    {"device_s", limits.device_s},
                    {"tokens", limits.tokens},
                    {"money", limits.money}};
  return body;
}

Result<RunUsage> run_usage_of(const Archive& archive) {
  RunUsage usage{.used = {}, .limits = archive.config().budget};
  try {
    ASSIGN_OR_RETURN(const std::vector<Event> forks, archive.events_of("fork"));
    ASSIGN_OR_RETURN(const std::vector<Event> usages, archive.events_of(kUsageEvent));
    // What a parent was allowed is nothing to a fork, which has a configuration of its own.
    const std::int64_t own = forks.empty() ? -1 : forks.back().sequence;
    if (!usages.empty()) {
      ASSIGN_OR_RETURN(const Json body, parse_json(usages.back().body, "a usage event"));
      usage.used = used_from_json(body);
      if (const Json& limits = body.at("limits"); usages.back().sequence > own)
        usage.limits = {.wall_s = limits.at("wall_s").get<double>(),
                        .evaluations = limits.at("evaluations").get<int>(),
                        .device_s = limits.at("device_s").get<double>(),
                        .tokens = limits.at("tokens").get<std::int64_t>(),
                        .money = limits.at("money").get<double>()};
    }
    ASSIGN_OR_RETURN(const std::optional<Json> observation, archive.last_event("observation"));
    if (!observation) return usage;
    // All of it only grows: the larger is the newer.
    if (const Used seen = used_from_json(*observation); seen.used_s >= usage.used.used_s)
      usage.used = seen;
    if (usage.used.screened < 0) {
      ASSIGN_OR_RETURN(const std::vector<Event> all, archive.events_of("observation"));
      usage.used.screened = static_cast<int>(all.size());
    }
    return usage;
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read what a run has used", trouble.what(),
                 "restore its archive from a copy"};
  }
}

}  // namespace kbeam
