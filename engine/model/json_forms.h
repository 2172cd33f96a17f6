// Every noun as JSON and back. Field names are the C++ names; enums are their words.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

Json to_json(const Idea& idea);
Json to_json(const Candidate& candidate);  // sources included
Json to_json(const Artifact& artifact);
Json to_json(const CheckReport& report);
Json to_json(const Measurement& measurement);
Json to_json(const Evaluation& evaluation);
Json to_json(const Environment& environment);
Json to_json(const CampaignConfig& config);
Json to_json(const FamilyState& family);
Json to_json(const Champion& champion);

// Missing or mistyped fields are an Error that names the field.
Result<Idea> idea_from_json(const Json& json);
Result<Candidate> candidate_from_json(const Json& json);
Result<Artifact> artifact_from_json(const Json& json);
Result<Measurement> measurement_from_json(const Json& json);
Result<Evaluation> evaluation_from_json(const Json& json);
Result<Environment> environment_from_json(const Json& json);
Result<CampaignConfig> campaign_config_from_json(const Json& json);
Result<FamilyState> family_from_json(const Json& json);
Result<Champion> champion_from_json(const Json& json);

}  // namespace kbeam
