#include "loop/campaign_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/foreign_json.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

Error damaged(const std::string& what, const std::string& why) {
  return {ErrorCode::corrupt, "read " + what + " from the archive", why,
          "the archive is damaged: start a new run"};
}

// The first candidate of one row with this machine code: those after it were its duplicates.
void note_object(const Json& artifact, const std::map<std::string, Candidate>& candidates,
                 History& history) {
  const auto known = candidates.find(artifact.at("candidate_id").get<std::string>());
  const std::string object = artifact.at("object_hash").get<std::string>();
  if (known == candidates.end() || known->second.rows.size() != 1 || object.empty()) return;
  history.objects_seen.emplace(object, known->first);
}

void note_used(const Json& body, History& history) {
  const Used used = used_from_json(body);
  history.used_s = used.used_s;
  history.busy_s = used.busy_s;
  history.device_s = used.device_s;
}

History::RecordedPromotion read_promotion(const Json& body) {
  History::RecordedPromotion recorded{.candidate_id = body.at("candidate_id").get<std::string>(),
                                      .evaluation_id = body.at("evaluation_id").get<std::string>(),
                                      .all_cores_id = body.at("all_cores_id").get<std::string>(),
                                      .confidence = body.at("confidence").get<double>(),
                                      .case_confidence = body.at("case_confidence").get<double>(),
                                      .slower_allowed = body.at("slower_allowed").get<int>(),
                                      .failed_at = std::nullopt};
  if (body.at("failed_at").is_number()) recorded.failed_at = body["failed_at"].get<std::int64_t>();
  return recorded;
}

}  // namespace

std::string CampaignLog::next_evaluation_id() {
  if (evaluation_count_ < 0)
    evaluation_count_ = archive_->count_evaluations().ok() ? *archive_->count_evaluations() : 0;
  return fmt::format("e{:05}", ++evaluation_count_);
}

Result<void> CampaignLog::baseline(const BaselineFacts& facts) {
  return archive_->append_event("baseline", to_json(facts));
}

Result<void> CampaignLog::submission(const Submission& submission) {
  return archive_->append_event("submission", to_json(submission));
}

Result<void> CampaignLog::steering(const SteeringMessage& message) {
  return archive_->append_event("steering", to_json(message));
}

Result<void> CampaignLog::attempt(const BuiltCandidate& built, const Evaluation& evaluation,
                                  const std::string& decision, const std::string& why) {
  RETURN_IF_ERROR(archive_->append_candidate(built.candidate));
  for (const Artifact& artifact : built.artifacts)
    RETURN_IF_ERROR(archive_->append_artifact(built.candidate.id, artifact));
  RETURN_IF_ERROR(archive_->append_evaluation(evaluation));
  return archive_->append_decision({decision, built.candidate.id, why});
}

Result<void> CampaignLog::observation(const Observation& observation, const Used& used) {
  Json body{{"candidate_id", observation.candidate_id},
            {"verdict", std::string(to_string(observation.verdict))},
            {"speedup", observation.speedup}};
  body.update(to_json(used));
  return archive_->append_event("observation", body);
}

Result<void> CampaignLog::usage(const Used& used, const Budget& limits) {
  return archive_->append_event(kUsageEvent, usage_event(used, limits));
}

Result<void> CampaignLog::confirmation(const Evaluation& evaluation) {
  return archive_->append_evaluation(evaluation);
}

Result<void> CampaignLog::crowned(const Champion& champion, const std::string& why) {
  RETURN_IF_ERROR(archive_->append_event("champion", to_json(champion)));
  return archive_->append_decision(
      {"champion of " + champion.case_name, champion.candidate_id, why});
}

Result<void> CampaignLog::refused(const Settlement& settled) {
  const Champion& challenger = settled.champion;
  Json body{{"case_name", challenger.case_name},
            {"candidate_id", challenger.candidate_id},
            {"why", settled.why}};
  if (const auto& contender = settled.contender)
    body.update({{"against", contender->against},
                 {"speedup", contender->speedup},
                 {"low", contender->low},
                 {"high", contender->high}});
  RETURN_IF_ERROR(archive_->append_event("refusal", body));
  return archive_->append_decision(
      {"not confirmed on " + challenger.case_name, challenger.candidate_id, settled.why});
}

Result<void> CampaignLog::promotion(const Promotion& promotion) {
  return archive_->append_event(
      "promotion", {{"candidate_id", promotion.winner.id},
                    {"evaluation_id", promotion.evaluation.id},
                    {"all_cores_id", promotion.all_cores ? promotion.all_cores->id : std::string()},
                    {"engine_failed", engine_failed(promotion)},
                    {"confidence", promotion.confidence},
                    {"case_confidence", promotion.case_confidence},
                    {"slower_allowed", promotion.slower_allowed},
                    {"failed_at", promotion.failed_at ? Json(*promotion.failed_at) : Json()}});
}

Result<std::optional<Promotion>> CampaignLog::find_promotion(
    const Candidate& portfolio, const std::vector<History::RecordedPromotion>& recorded) const {
  for (const History::RecordedPromotion& one : recorded) {
    if (one.candidate_id != portfolio.id) continue;
    ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations, archive_->evaluations());
    Promotion promotion{
        .winner = portfolio, .confidence = one.confidence, .failed_at = one.failed_at};
    promotion.case_confidence = one.case_confidence;
    promotion.slower_allowed = one.slower_allowed;
    for (const Evaluation& evaluation : evaluations) {
      if (evaluation.id == one.evaluation_id) promotion.evaluation = evaluation;
      if (evaluation.id == one.all_cores_id) promotion.all_cores = evaluation;
    }
    summarise(promotion);
    return std::optional<Promotion>(std::move(promotion));
  }
  return std::optional<Promotion>();
}

Result<void> CampaignLog::new_notices(const std::vector<Search::Notice>& notices) {
  ASSIGN_OR_RETURN(const std::vector<Decision> decisions, archive_->decisions());
  for (const Search::Notice& notice : notices) {
    const bool known =
        std::any_of(decisions.begin(), decisions.end(), [&](const Decision& decision) {
          return decision.what == notice.what && decision.subject == notice.subject &&
                 decision.why == notice.why;
        });
    if (!known)
      RETURN_IF_ERROR(archive_->append_decision({notice.what, notice.subject, notice.why}));
  }
  return {};
}

Result<void> CampaignLog::families(const std::vector<FamilyState>& families) {
  Json list = Json::array();
  for (const FamilyState& family : families) list.push_back(to_json(family));
  return archive_->append_event("families", {{"families", std::move(list)}});
}

Result<void> CampaignLog::roles(const std::vector<FamilyState>& families) {
  for (const FamilyState& family : families) {
    const std::string role = family.retired ? "retired" : std::string(to_string(family.role));
    if (std::exchange(roles_[family.name], role) == role) continue;
    RETURN_IF_ERROR(archive_->append_event("role", {{"family", family.name}, {"role", role}}));
  }
  return {};
}

Result<void> CampaignLog::ended(const Json& summary) {
  return archive_->append_event("stop", summary);
}

Result<History> CampaignLog::replay(Search& search,
                                    const std::function<Sketch(const Submission&)>& to_sketch) {
  History history;
  std::map<std::string, Candidate> candidates;
  ASSIGN_OR_RETURN(const std::vector<Candidate> recorded, archive_->candidates());
  for (const Candidate& candidate : recorded) candidates[candidate.id] = candidate;
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive_->events());
  for (const Event& event : events) {
    const Json body = parse_foreign_json(event.body);
    try {
      if (event.kind == "baseline") {
        ASSIGN_OR_RETURN(history.baseline, baseline_from_json(body));
      } else if (event.kind == "submission") {
        ASSIGN_OR_RETURN(Submission submission, submission_from_json(body));
        search.add(to_sketch(submission));
        history.submissions.push_back(std::move(submission));
      } else if (event.kind == "steering") {
        ASSIGN_OR_RETURN(const SteeringMessage message, steering_message_from_json(body));
        static_cast<void>(apply_steering(message, search, history.steering));
      } else if (event.kind == "observation") {
        Observation observation;
        observation.candidate_id = body.at("candidate_id").get<std::string>();
        const auto verdict = parse_verdict(body.at("verdict").get<std::string>());
        if (!verdict) return damaged("an observation", "unknown verdict");
        observation.verdict = *verdict;
        body.at("speedup").get_to(observation.speedup);
        note_used(body, history);
        const auto known = candidates.find(observation.candidate_id);
        if (known == candidates.end())
          return damaged("an observation", "no candidate " + observation.candidate_id);
        search.absorb(known->second, observation);
        history.observations[observation.candidate_id] = observation;
        ++history.evaluations;
        if (blame_of(*verdict) == Blame::candidate) ++history.rejects[*verdict];
      } else if (event.kind == kUsageEvent) {
        note_used(body, history);
      } else if (event.kind == "champion") {
        ASSIGN_OR_RETURN(const Champion champion, champion_from_json(body));
        search.crown(champion);
        ++history.challenges;
        history.crowned.push_back(champion);
        history.promotions.clear();  // of a portfolio without this champion
      } else if (event.kind == "artifact") {
        note_object(body, candidates, history);
      } else if (event.kind == "promotion" && !body.at("engine_failed").get<bool>()) {
        history.promotions.push_back(read_promotion(body));
      } else if (event.kind == "role") {
        roles_[body.at("family").get<std::string>()] = body.at("role").get<std::string>();
      } else if (event.kind == "refusal") {
        ++history.challenges;
        search.refuse(body.at("case_name").get<std::string>(),
                      body.at("candidate_id").get<std::string>(),
                      body.at("why").get<std::string>());
        if (body.contains("against"))
          history.contenders.push_back({.case_name = body.at("case_name").get<std::string>(),
                                        .candidate_id = body.at("candidate_id").get<std::string>(),
                                        .against = body.at("against").get<std::string>(),
                                        .speedup = body.at("speedup").get<double>(),
                                        .low = body.at("low").get<double>(),
                                        .high = body.at("high").get<double>()});
      }
    } catch (const Json::exception& trouble) {
      return damaged("event " + std::to_string(event.sequence), trouble.what());
    }
  }
  // Nothing was learnt of a candidate that the engine failed.
  std::erase_if(history.objects_seen, [&](const auto& seen) {
    const auto observation = history.observations.find(seen.second);
    return observation == history.observations.end() ||
           observation->second.verdict == Verdict::engine_failed;
  });
  return history;
}

}  // namespace kbeam
