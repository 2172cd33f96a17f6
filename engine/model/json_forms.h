// Every noun as JSON and back. Field names are the C++ names; enums are their words. Numbers that
// JSON lacks are the strings "nan", "inf" and "-inf", so that the figure of a failed check
// survives.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

Json to_json(const Idea& idea);
Json to_json(const Candidate& candidate);  // sources included
Json to_json(const Artifact& artifact);
Json to_json(const KernelResources& kernel);
Json to_json(const CheckReport& report);
Json to_json(const PairedSamples& samples);
Json to_json(const Measurement& measurement);
Json to_json(const Evaluation& evaluation);
Json to_json(const Environment& environment);
Json to_json(const CampaignConfig& config);
Json to_json(const FamilyState& family);
Json to_json(const Champion& champion);

// Missing or mistyped fields are an Error that names the field by its path ("checks[2].verdict").
// Unknown fields are ignored.
Result<Idea> idea_from_json(const Json& json);
Result<Candidate> candidate_from_json(const Json& json);
Result<Artifact> artifact_from_json(const Json& json);
Result<KernelResources> kernel_resources_from_json(const Json& json);
Result<CheckReport> check_report_from_json(const Json& json);
Result<PairedSamples> paired_samples_from_json(const Json& json);
Result<Measurement> measurement_from_json(const Json& json);
Result<Evaluation> evaluation_from_json(const Json& json);
Result<Environment> environment_from_json(const Json& json);
Result<CampaignConfig> campaign_config_from_json(const Json& json);
Result<FamilyState> family_from_json(const Json& json);
Result<Champion> champion_from_json(const Json& json);

// One line of text. Bytes that are not UTF-8 (a compiler's log may hold some) become U+FFFD instead
// of an exception.
std::string json_text(const Json& json);
// Text that is no JSON is an Error that says where; `what` names it ("line 3 of events.jsonl").
Result<Json> parse_json(const std::string& text, const std::string& what);

}  // namespace kbeam
