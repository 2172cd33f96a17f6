#include "loop/recompute.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/foreign_json.h"
#include "loop/campaign_search.h"
#include "loop/inbox.h"
#include "loop/promotion.h"
#include "loop/steering.h"
#include "measure/statistics.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

// Figures travel as text that brings the same number back; products may be rounded twice.
bool agree(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

Json summary_json(const PairedSummary& summary) {
  return to_json(Measurement{.summary = summary}).at("summary");
}

const Measurement* find_case(const Evaluation& evaluation, const std::string& case_name) {
  for (const Measurement& measurement : evaluation.measurements)
    if (measurement.case_name == case_name) return &measurement;
  return nullptr;
}

class Recomputation {
 public:
  Recomputation(const Archive& archive, Search* search) : archive_(archive), search_(search) {}

  Result<Recomputed> run() {
    ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations, archive_.evaluations());
    for (const Evaluation& evaluation : evaluations) evaluations_[evaluation.id] = evaluation;
    ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, archive_.candidates());
    for (const Candidate& candidate : candidates) candidates_[candidate.id] = candidate;
    ASSIGN_OR_RETURN(const std::vector<Event> events, archive_.events());
    for (const Event& event : events) {
      const Json body = parse_foreign_json(event.body);
      try {
        RETURN_IF_ERROR(decide_again(event, body));
      } catch (const Json::exception& trouble) {
        return Error{ErrorCode::corrupt,
                     fmt::format("decide event {} ({}) again", event.sequence, event.kind),
                     trouble.what(), "the record was written by another version of kbeam"};
      }
    }
    return std::move(result_);
  }

 private:
  Result<void> decide_again(const Event& event, const Json& body);
  void evaluation(const std::string& id);
  void observation(const Json& body);
  void choice(const Observation& observation);
  void champion(const Champion& recorded);
  void refusal(const Json& body);
  void promotion(const Json& body);
  void end(const Json& summary);

  void mistake(std::string sentence) {
    result_.mistakes.push_back(fmt::format("event {}: {}", sequence_, std::move(sentence)));
  }
  double reference_speedup(const std::string& case_name) const {
    const auto found = champions_.find(case_name);
    return found == champions_.end() ? 1 : found->second.speedup;
  }
  const Measurement* confirmed(const std::string& case_name, const std::string& candidate_id);

  const Archive& archive_;
  Search* search_;
  Recomputed result_;
  std::map<std::string, Evaluation> evaluations_;
  std::map<std::string, Candidate> candidates_;
  std::map<std::string, Champion> champions_;         // by case
  std::map<std::string, Observation> observations_;   // by candidate
  std::map<std::string, std::string> verdict_words_;  // of promotions, by candidate
  std::deque<std::string> under_way_;                 // what the search has chosen
  const Evaluation* last_ = nullptr;
  std::optional<Promotion> won_;
  SteeringState steering_;
  std::int64_t sequence_ = 0;
};

Result<void> Recomputation::decide_again(const Event& event, const Json& body) {
  sequence_ = event.sequence;
  if (event.kind == "evaluation") {
    evaluation(body.at("id").get<std::string>());
  } else if (event.kind == "submission" && search_ != nullptr) {
    ASSIGN_OR_RETURN(const Submission submission, submission_from_json(body));
    search_->add(make_sketch(submission));
  } else if (event.kind == "steering" && search_ != nullptr) {
    ASSIGN_OR_RETURN(const SteeringMessage message, steering_message_from_json(body));
    static_cast<void>(apply_steering(message, *search_, steering_));
  } else if (event.kind == "observation") {
    observation(body);
  } else if (event.kind == "champion") {
    ASSIGN_OR_RETURN(const Champion recorded, champion_from_json(body));
    champion(recorded);
  } else if (event.kind == "refusal") {
    refusal(body);
    if (search_ != nullptr)
      search_->refuse(body.at("case_name").get<std::string>(),
                      body.at("candidate_id").get<std::string>(),
                      body.at("why").get<std::string>());
  } else if (event.kind == "decision") {
    const std::string what = body.at("what").get<std::string>();
    if (what == "winner" || what == "not promoted")
      verdict_words_[body.at("subject").get<std::string>()] = what;
  } else if (event.kind == "promotion") {
    promotion(body);
  } else if (event.kind == "stop") {
    end(body);
  }
  return {};
}

void Recomputation::evaluation(const std::string& id) {
  last_ = &evaluations_.at(id);
  for (const Measurement& measurement : last_->measurements) {
    ++result_.summaries;
    const PairedSummary again = summarise_pairs(measurement.samples, measurement.summary.confidence,
                                                measurement.noise_floor);
    if (summary_json(again) != summary_json(measurement.summary))
      mistake(fmt::format("evaluation {}, case {}: the samples say {}, recorded is {}", id,
                          measurement.case_name, json_text(summary_json(again)),
                          json_text(summary_json(measurement.summary))));
    const bool paired_with_champions =
        last_->stage == Stage::screen || last_->stage == Stage::confirm;
    if (paired_with_champions &&
        !agree(measurement.reference_speedup, reference_speedup(measurement.case_name)))
      mistake(
          fmt::format("evaluation {}, case {}: its reference is recorded as {} x the baseline, "
                      "the champion of then as {} x",
                      id, measurement.case_name, measurement.reference_speedup,
                      reference_speedup(measurement.case_name)));
  }
}

void Recomputation::observation(const Json& body) {
  ++result_.decisions;
  Observation recorded;
  recorded.candidate_id = body.at("candidate_id").get<std::string>();
  recorded.verdict =
      parse_verdict(body.at("verdict").get<std::string>()).value_or(Verdict::accepted);
  body.at("speedup").get_to(recorded.speedup);
  choice(recorded);
  if (search_ != nullptr) search_->tell(recorded);
  if (search_ != nullptr) search_->challenges();  // as the campaign does after each
  observations_[recorded.candidate_id] = recorded;
  if (last_ == nullptr || last_->candidate_id != recorded.candidate_id)
    return mistake("an observation of " + recorded.candidate_id + " without its evaluation");
  if (last_->verdict != recorded.verdict)
    mistake(fmt::format("{} is observed as {}, its evaluation {} says {}", recorded.candidate_id,
                        to_string(recorded.verdict), last_->id, to_string(last_->verdict)));
  if (last_->measurements.empty()) return;  // nothing was timed, or it is a twin's
  for (const auto& [case_name, speedup] : recorded.speedup) {
    const Measurement* found = find_case(*last_, case_name);
    if (found == nullptr ||
        !agree(speedup, ranking_speedup(found->samples) * reference_speedup(case_name)))
      mistake(fmt::format("{} is observed with {} x on {}, which its evaluation {} does not say",
                          recorded.candidate_id, speedup, case_name, last_->id));
  }
}

// The search keeps kBuildsAhead under way and is told of the oldest first, killed or not.
void Recomputation::choice(const Observation& observation) {
  if (search_ == nullptr) return;
  ++result_.choices;
  while (under_way_.size() < static_cast<std::size_t>(kBuildsAhead)) {
    const std::optional<Proposal> proposal = search_->ask();
    if (!proposal) break;
    under_way_.push_back(proposal->candidate.id);
  }
  if (under_way_.empty() || under_way_.front() != observation.candidate_id) {
    mistake(fmt::format("{} was evaluated, where the search had chosen {}",
                        observation.candidate_id,
                        under_way_.empty() ? "nothing" : under_way_.front()));
    std::erase(under_way_, observation.candidate_id);
    return;
  }
  under_way_.pop_front();
}

// The measurement of this case in the confirmation that was recorded last.
const Measurement* Recomputation::confirmed(const std::string& case_name,
                                            const std::string& candidate_id) {
  if (last_ == nullptr || last_->stage != Stage::confirm || last_->candidate_id != candidate_id) {
    mistake("a decision on " + candidate_id + " without its confirmation");
    return nullptr;
  }
  return find_case(*last_, case_name);
}

void Recomputation::champion(const Champion& recorded) {
  ++result_.decisions;
  const Measurement* found = confirmed(recorded.case_name, recorded.candidate_id);
  const double scale = reference_speedup(recorded.case_name);
  if (found == nullptr || found->summary.comparison != Comparison::faster ||
      !agree(recorded.speedup, found->summary.speedup * scale) ||
      !agree(recorded.low, found->summary.low * scale) ||
      !agree(recorded.high, found->summary.high * scale))
    mistake(fmt::format("{} became champion of {} with {} x, which no confirmation says",
                        recorded.candidate_id, recorded.case_name, recorded.speedup));
  champions_[recorded.case_name] = recorded;
  if (search_ != nullptr) search_->crown(recorded);
}

void Recomputation::refusal(const Json& body) {
  ++result_.decisions;
  const auto case_name = body.at("case_name").get<std::string>();
  const auto candidate_id = body.at("candidate_id").get<std::string>();
  const Measurement* found = confirmed(case_name, candidate_id);
  if (found != nullptr && found->summary.comparison == Comparison::faster)
    mistake(candidate_id + " was refused on " + case_name + ", where its confirmation says faster");
  if (!body.contains("against")) return;  // no contender
  const auto says = [&](const char* figure, double confirmed) {
    return agree(body.at(figure).get<double>(), confirmed);
  };
  if (found == nullptr || !says("speedup", found->summary.speedup) ||
      !says("low", found->summary.low) || !says("high", found->summary.high))
    mistake(fmt::format("{} contends for {} with {} x, which no confirmation says", candidate_id,
                        case_name, body.at("speedup").get<double>()));
}

void Recomputation::promotion(const Json& body) {
  ++result_.decisions;
  const std::string id = body.at("candidate_id").get<std::string>();
  const auto evaluation = evaluations_.find(body.at("evaluation_id").get<std::string>());
  const auto candidate = candidates_.find(id);
  if (evaluation == evaluations_.end() || candidate == candidates_.end() ||
      evaluation->second.candidate_id != id)
    return mistake("a promotion of " + id + " without its evaluation");
  Promotion again{.winner = candidate->second,
                  .evaluation = evaluation->second,
                  .confidence = body.at("confidence").get<double>()};
  again.case_confidence = body.at("case_confidence").get<double>();
  again.slower_allowed = body.at("slower_allowed").get<int>();
  const auto all_cores = evaluations_.find(body.at("all_cores_id").get<std::string>());
  if (all_cores != evaluations_.end()) again.all_cores = all_cores->second;
  summarise(again);
  const std::string why_not = why_not_won(again);
  const std::string& word = verdict_words_[id];
  if ((word == "winner") != why_not.empty())
    mistake(fmt::format("{} is recorded as {}, where its promotion says: {}", id, word,
                        why_not.empty() ? "winner" : why_not));
  if (why_not.empty()) won_ = std::move(again);
}

void Recomputation::end(const Json& summary) {
  const Json winner = summary.value("winner", Json());
  if (!winner.is_object()) return;
  ++result_.decisions;
  const std::string id = winner.at("candidate_id").get<std::string>();
  if (!won_ || won_->winner.id != id ||
      !agree(winner.at("speedup_geomean").get<double>(), won_->geomean.speedup))
    mistake("the summary names " + id + " as winner with figures that no promotion says");
}

}  // namespace

Result<Recomputed> recompute_decisions(const Archive& archive, Search* search) {
  return Recomputation(archive, search).run();
}

}  // namespace kbeam
