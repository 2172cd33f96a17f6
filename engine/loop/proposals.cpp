#include "loop/proposals.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/hash.h"
#include "build/source_scan.h"
#include "loop/campaign_search.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

// Sources that wait for their first judgement before proposers are asked for more: enough that the
// loop never runs dry while a model thinks, few enough that ideas know what became of the last
// ones.
constexpr int kBacklog = 2 * kBuildsAhead;
// After so many evaluations a source that was not judged will not be: its knobs allow no setting.
constexpr int kPatience = 30;

std::string content_id(const Idea& idea) {
  Hasher hasher;
  hasher.field(idea.source).field(idea.family).field(idea.category);
  hasher.field(idea.text).field(idea.expected);
  for (const std::string& parent : idea.parents) hasher.field(parent);
  return hasher.hex().substr(0, 12);
}

Json usage_json(const Usage& usage) {
  return {{"tokens_in", usage.tokens_in},
          {"tokens_out", usage.tokens_out},
          {"tokens_estimated", usage.tokens_estimated},
          {"money", usage.money}};
}

Usage usage_from(const Json& body) {
  return {.tokens_in = body.value("tokens_in", std::int64_t{0}),
          .tokens_out = body.value("tokens_out", std::int64_t{0}),
          .tokens_estimated = body.value("tokens_estimated", std::int64_t{0}),
          .money = body.value("money", 0.0)};
}

void add_usage(Usage& sum, const Usage& more) {
  sum.tokens_in += more.tokens_in;
  sum.tokens_out += more.tokens_out;
  sum.tokens_estimated += more.tokens_estimated;
  sum.money += more.money;
}

// What an unfinished request has cost as far as anybody can say: its prompt.
Usage prompt_only(std::int64_t tokens, double money) {
  return {.tokens_in = tokens, .tokens_estimated = tokens, .money = money};
}

double mean_gain(const std::map<std::string, double>& speedup,
                 const std::map<std::string, double>& champion_speedup) {
  double gain = 0;
  for (const auto& [case_name, one] : speedup) {
    const auto champion = champion_speedup.find(case_name);
    const double to_beat = champion == champion_speedup.end() ? 1 : champion->second;
    if (one > to_beat && to_beat > 0) gain += std::log(one / to_beat);
  }
  return speedup.empty() ? 0 : gain / static_cast<double>(speedup.size());
}

}  // namespace

ProposalPump::ProposalPump(std::vector<std::unique_ptr<Proposer>> proposers, const Budget& budget,
                           std::string target)
    : proposers_(std::move(proposers)), budget_(budget), target_(std::move(target)) {}

void ProposalPump::note_source(const std::string& source) {
  foreign_sources_.insert(normalised_source(source));
}

Result<void> ProposalPump::restore(CampaignLog& log) {
  ASSIGN_OR_RETURN(const std::vector<Event> events, log.archive().events());
  std::map<std::string, Json> open;
  for (const Event& event : events) {
    if (event.kind != "model_request" && event.kind != "model_reply" && event.kind != "delivery" &&
        event.kind != "submission")
      continue;
    ASSIGN_OR_RETURN(Json body, parse_json(event.body, "event " + std::to_string(event.sequence)));
    if (event.kind == "submission") {
      note_source(body.value("source", ""));
    } else if (event.kind == "delivery") {
      ++totals_.delivered;
    } else if (event.kind == "model_reply") {
      totals_.replies += 1;
      add_usage(totals_.usage, usage_from(body));
      open.erase(body.value("request_id", ""));
    } else {
      ++totals_.requests;
      asks_ = std::max(asks_, body.value("ask", 0));
      const std::string id = body.value("request_id", "");
      open[id] = std::move(body);
    }
  }
  for (const auto& [id, body] : open) {
    ReplyRecord lost{.request_id = id,
                     .model = body.value("model", ""),
                     .step = body.value("step", ""),
                     .by_connection = true,
                     .detail = "kbeam ended while it was under way"};
    lost.usage =
        prompt_only(body.value("most_tokens_in", std::int64_t{0}), body.value("prompt_money", 0.0));
    RETURN_IF_ERROR(write_reply(log, body.value("proposer", ""), lost, Moment{}));
  }
  return {};
}

Result<void> ProposalPump::take(CampaignLog& log, const Hooks& hooks, const Moment& moment) {
  evaluations_ = moment.evaluations;
  const auto listen = [&](std::size_t proposer) -> Result<void> {
    for (const ProposerNews& news : proposers_[proposer]->take_news(moment))
      RETURN_IF_ERROR(note(log, hooks, proposer, news, moment));
    return {};
  };
  for (std::size_t i = 0; i < proposers_.size(); ++i) RETURN_IF_ERROR(listen(i));
  std::shared_ptr<const ProposalContext> context;
  for (std::size_t i = 0; i < proposers_.size(); ++i) {
    if (out_of_budget_ || (backlog() >= kBacklog && !moment.is_idle)) break;
    if (proposers_[i]->state() != ProposerState::ready) continue;
    if (!context) context = std::make_shared<const ProposalContext>(hooks.context());
    ++asks_;
    proposers_[i]->ask({.number = asks_, .role = next_role(*context), .context = context});
    RETURN_IF_ERROR(listen(i));  // what it wants to send goes out at once
  }
  return {};
}

// The roles in turn; a near miss is asked for only where there is one.
Role ProposalPump::next_role(const ProposalContext& context) const {
  if (asks_ % 3 == 2 && context.champions_version > 0) return Role::exploit;
  if (asks_ % 3 == 0 && !context.near_misses.empty()) return Role::near_miss;
  return Role::structural;
}

Result<void> ProposalPump::note(CampaignLog& log, const Hooks& hooks, std::size_t proposer,
                                const ProposerNews& news, const Moment& moment) {
  if (const auto* record = std::get_if<RequestRecord>(&news))
    return request(log, proposer, *record, moment);
  if (const auto* record = std::get_if<ReplyRecord>(&news)) {
    open_.erase(record->request_id);
    if (record->outcome != ReplyOutcome::delivered)
      hooks.progress->event(fmt::format("{} ({}): {}{}", record->model, record->step,
                                        to_string(record->outcome),
                                        record->detail.empty() ? "" : ": " + record->detail));
    return write_reply(log, proposers_[proposer]->name(), *record, moment);
  }
  if (const auto* brought = std::get_if<Delivery>(&news))
    return delivery(log, hooks, proposer, *brought);
  const std::string& text = std::get<Remark>(news).text;
  hooks.progress->event(text);
  return log.archive().append_decision({"proposer", proposers_[proposer]->name(), text});
}

Result<void> ProposalPump::request(CampaignLog& log, std::size_t proposer,
                                   const RequestRecord& record, const Moment& moment) {
  if (const auto budget = lacks_room(record.most)) {
    // What others have reserved and do not use may make room again.
    if (open_.empty()) out_of_budget_ = budget;
    proposers_[proposer]->forbid(record.id);
    return write_reply(log, proposers_[proposer]->name(),
                       {.request_id = record.id,
                        .model = record.model,
                        .step = record.step,
                        .outcome = ReplyOutcome::not_allowed,
                        .by_connection = true,
                        .detail = std::string(to_string(*budget)),
                        .attempts = 0},
                       moment);
  }
  RETURN_IF_ERROR(
      log.archive().append_event("model_request", {{"request_id", record.id},
                                                   {"proposer", proposers_[proposer]->name()},
                                                   {"ask", record.ask},
                                                   {"model", record.model},
                                                   {"step", record.step},
                                                   {"at_evaluation", moment.evaluations},
                                                   {"most_tokens_in", record.most.tokens_in},
                                                   {"most_tokens_out", record.most.tokens_out},
                                                   {"most_money", record.most.money},
                                                   {"prompt_money", record.prompt_money},
                                                   {"prompt", record.prompt}}));
  ++totals_.requests;
  open_[record.id] = {proposers_[proposer]->name(), record};
  open_[record.id].record.prompt.clear();
  proposers_[proposer]->allow(record.id);
  return {};
}

Result<void> ProposalPump::write_reply(CampaignLog& log, const std::string& proposer,
                                       const ReplyRecord& record, const Moment& moment) {
  ++totals_.replies;
  add_usage(totals_.usage, record.usage);
  Json body{{"request_id", record.request_id},
            {"proposer", proposer},
            {"model", record.model},
            {"step", record.step},
            {"outcome", std::string(to_string(record.outcome))},
            {"by_connection", record.by_connection},
            {"detail", record.detail},
            {"latency_s", record.latency_s},
            {"attempts", record.attempts},
            {"troubles", record.troubles},
            {"at_evaluation", moment.evaluations},
            {"text", record.text}};
  body.update(usage_json(record.usage));
  body["total"] = usage_json(totals_.usage);
  body["total"]["requests"] = totals_.requests;
  return log.archive().append_event("model_reply", body);
}

Result<void> ProposalPump::delivery(CampaignLog& log, const Hooks& hooks, std::size_t proposer,
                                    const Delivery& delivery) {
  Submission submission{delivery.idea, delivery.source, delivery.source_name};
  submission.idea.id = content_id(submission.idea);
  Json body{{"delivery_id", delivery.id},
            {"request_id", delivery.request_id},
            {"proposer", proposers_[proposer]->name()},
            {"model", delivery.model},
            {"idea_id", submission.idea.id},
            {"idea", to_json(submission.idea)},
            {"source_name", delivery.source_name},
            {"source", delivery.source},
            {"taken", false},
            {"why_not", ""}};
  const std::string key = normalised_source(delivery.source);
  const bool known = sources_.contains(key) || foreign_sources_.contains(key);
  const std::string mistake =
      known ? std::string() : mistake_in_source(delivery.source, delivery.source_name, target_);
  ++totals_.delivered;
  if (known || !mistake.empty()) {
    body["why_not"] = known ? "the campaign has this source" : mistake;
    RETURN_IF_ERROR(log.archive().append_event("delivery", body));
    proposers_[proposer]->tell({.delivery_id = delivery.id,
                                .first = true,
                                .duplicate = known,
                                .verdict = Verdict::build_failed,
                                .reason = body["why_not"].get<std::string>()});
    return {};
  }
  body["taken"] = true;
  // Together: a killed run knows where a source came from, or does not have it.
  const Result<void> kept = log.archive().together([&]() -> Result<void> {
    RETURN_IF_ERROR(log.archive().append_idea(submission.idea));
    RETURN_IF_ERROR(log.archive().append_event("delivery", body));
    return log.submission(submission);
  });
  RETURN_IF_ERROR(kept);
  sources_[key] = {.proposer = proposer, .delivery_id = delivery.id, .at_evaluation = evaluations_};
  hooks.add(make_sketch(submission));
  hooks.progress->event(fmt::format("{} proposes [{}] {}", delivery.model, submission.idea.family,
                                    submission.idea.text.substr(0, 160)));
  return {};
}

void ProposalPump::judged(const BuiltCandidate& built, const Evaluation& evaluation,
                          const std::map<std::string, double>& speedup,
                          const std::map<std::string, double>& champion_speedup) {
  if (proposers_.empty() || built.candidate.rows.size() != 1) return;
  const auto found = sources_.find(normalised_source(built.candidate.rows.front().source));
  if (found == sources_.end()) return;
  Source& source = found->second;
  proposers_[source.proposer]->tell(
      {.delivery_id = source.delivery_id,
       .first = source.judged++ == 0,
       .candidate_id = built.candidate.id,
       .verdict = evaluation.verdict,
       .reason = evaluation.reason,
       .log = built.artifacts.empty() ? std::string() : built.artifacts.front().log,
       .speedup = speedup,
       .gain = mean_gain(speedup, champion_speedup)});
}

Result<void> ProposalPump::close(CampaignLog& log, const Moment& moment) {
  for (const std::unique_ptr<Proposer>& proposer : proposers_)
    for (const ProposerNews& news : proposer->take_news(moment)) {
      const auto* record = std::get_if<ReplyRecord>(&news);
      if (record == nullptr) continue;
      open_.erase(record->request_id);
      RETURN_IF_ERROR(write_reply(log, proposer->name(), *record, moment));
    }
  for (const auto& [id, open] : std::exchange(open_, {})) {
    ReplyRecord cancelled{.request_id = id,
                          .model = open.record.model,
                          .step = open.record.step,
                          .outcome = ReplyOutcome::cancelled,
                          .by_connection = true,
                          .detail = "the campaign ended first"};
    cancelled.usage = prompt_only(open.record.most.tokens_in, open.record.prompt_money);
    RETURN_IF_ERROR(write_reply(log, open.proposer, cancelled, moment));
  }
  proposers_.clear();
  return {};
}

int ProposalPump::backlog() const {
  return static_cast<int>(std::count_if(sources_.begin(), sources_.end(), [&](const auto& entry) {
    return entry.second.judged == 0 && entry.second.at_evaluation + kPatience > evaluations_;
  }));
}

std::optional<StopReason> ProposalPump::lacks_room(const Usage& most) const {
  std::int64_t tokens = totals_.tokens() + most.tokens_in + most.tokens_out;
  double money = totals_.usage.money + most.money;
  for (const auto& [id, open] : open_) {
    tokens += open.record.most.tokens_in + open.record.most.tokens_out;
    money += open.record.most.money;
  }
  if (budget_.tokens > 0 && tokens > budget_.tokens) return StopReason::budget_tokens;
  if (budget_.money > 0 && money > budget_.money) return StopReason::budget_money;
  return std::nullopt;
}

bool ProposalPump::may_bring_more() const {
  if (out_of_budget_ && open_.empty()) return false;
  return std::any_of(proposers_.begin(), proposers_.end(),
                     [](const auto& one) { return one->state() != ProposerState::finished; });
}

std::optional<StopReason> ProposalPump::spent(bool nothing_to_judge) const {
  if (!out_of_budget_ || !open_.empty() || (backlog() > 0 && !nothing_to_judge))
    return std::nullopt;
  return out_of_budget_;
}

}  // namespace kbeam
