#include "propose/llm_proposer.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "propose/http_endpoint.h"
#include "propose/idea_match.h"
#include "propose/model_bandit.h"
#include "propose/prompts.h"
#include "propose/reply_reader.h"

namespace kbeam {
namespace {

constexpr double kLongestRest = 300;
constexpr std::size_t kMostKeptText = 256 * 1024;  // of a reply, in the archive

// One source on its way: its request, the rounds of mending, its delivery.
struct Work {
  int ask = 0;
  int idea = 0;   // from 1
  int round = 0;  // of mending
  std::string model;
  CodeTask task;
  std::shared_ptr<const ProposalContext> context;
  std::string last_reply;
};

struct Asked {  // an ask whose ideas have not come yet
  ProposalAsk ask;
  std::string model;
};

struct Under {  // a request that was announced
  RequestRecord record;
  ModelRequest request;
  std::optional<Asked> ideas;
  std::optional<Work> work;
};

class LlmProposer final : public Proposer {
 public:
  LlmProposer(LlmSetup setup, std::unique_ptr<ModelEndpoint> endpoint)
      : setup_(std::move(setup)),
        endpoint_(std::move(endpoint)),
        bandit_(model_names(setup_.options)) {}

  std::string name() const override { return setup_.name; }
  ProposerState state() const override;
  void ask(const ProposalAsk& ask) override;
  std::vector<ProposerNews> take_news(const Moment& moment) override;
  void allow(const std::string& request_id) override;
  void forbid(const std::string& request_id) override;
  void tell(const Judgement& judgement) override;

 private:
  static std::vector<std::string> model_names(const LlmOptions& options) {
    std::vector<std::string> names;
    for (const ModelPrice& model : options.models) names.push_back(model.model);
    return names;
  }
  const ModelPrice& price_of(const std::string& model) const;
  void announce(Under under, const std::string& step, Prompt prompt);
  void write_code(const Asked& asked, const std::vector<WordedIdea>& ideas);
  void code(Work work);
  void mend(Work work, std::string what, std::string log);
  void hear(const ModelReply& reply);
  void hear_ideas(const Asked& asked, const ModelReply& reply, ReplyRecord& record);
  void hear_code(Work work, const ModelReply& reply, ReplyRecord& record);
  void note_failure(const ModelReply& reply);
  void note_fruit(bool fruitful);
  Delivery delivery_of(const Work& work, const std::string& request_id, std::string source) const;
  double now_s() const { return static_cast<double>(setup_.clock->monotonic_ns()) * 1e-9; }

  LlmSetup setup_;
  std::unique_ptr<ModelEndpoint> endpoint_;
  ModelBandit bandit_;
  std::map<std::string, Under> under_way_;  // by request id
  std::map<std::string, Work> delivered_;   // by delivery id: their first judgement may mend them
  std::vector<ProposerNews> news_;
  std::vector<std::string> proposed_;  // hypotheses of this life
  int fruitless_ = 0;                  // asks in a row
  int failures_ = 0;                   // requests in a row
  double rests_until_s_ = 0;
  bool finished_ = false;
  bool refused_ = false;  // by the endpoint, for good
};

const ModelPrice& LlmProposer::price_of(const std::string& model) const {
  for (const ModelPrice& price : setup_.options.models)
    if (price.model == model) return price;
  return setup_.options.models.front();
}

ProposerState LlmProposer::state() const {
  if (finished_) return under_way_.empty() ? ProposerState::finished : ProposerState::working;
  // One ask at a time has its ideas under way, so that the next knows them.
  const bool asking = std::any_of(under_way_.begin(), under_way_.end(),
                                  [](const auto& entry) { return entry.second.ideas.has_value(); });
  if (asking || static_cast<int>(under_way_.size()) >= setup_.options.connections)
    return ProposerState::working;
  return setup_.rests && now_s() < rests_until_s_ ? ProposerState::resting : ProposerState::ready;
}

void LlmProposer::ask(const ProposalAsk& ask) {
  const std::string id = fmt::format("a{}/ideas", ask.number);
  const std::string model = endpoint_->fixed_model(id).value_or(bandit_.choose());
  bandit_.note_ask(model);
  Under under{.record = {.id = id, .ask = ask.number, .model = model}};
  under.ideas = {ask, model};
  announce(std::move(under), "ideas", ideas_prompt(ask, setup_.options.ideas));
}

void LlmProposer::announce(Under under, const std::string& step, Prompt prompt) {
  RequestRecord& record = under.record;
  record.step = step;
  record.prompt = prompt.text();
  record.most.tokens_in = estimate_tokens(record.prompt.size());
  record.most.tokens_out = setup_.options.reply_tokens;
  const ModelPrice& price = price_of(record.model);
  record.most.money = price.money(record.most.tokens_in, record.most.tokens_out);
  record.prompt_money = price.money(record.most.tokens_in, 0);
  under.request = {.id = record.id,
                   .model = record.model,
                   .prompt = std::move(prompt),
                   .most_tokens_out = setup_.options.reply_tokens};
  news_.push_back(record);
  record.prompt.clear();
  under_way_[record.id] = std::move(under);
}

void LlmProposer::allow(const std::string& request_id) {
  const auto found = under_way_.find(request_id);
  if (found != under_way_.end()) endpoint_->send(std::move(found->second.request));
}

void LlmProposer::forbid(const std::string& request_id) {
  under_way_.erase(request_id);
}

std::vector<ProposerNews> LlmProposer::take_news(const Moment& moment) {
  for (ModelReply& reply : endpoint_->take(moment)) {
    // What is read is what is kept, so that a replay reads the same.
    if (reply.text.size() > kMostKeptText) {
      reply.text.resize(kMostKeptText);
      if (!reply.failure) reply.failure = ReplyOutcome::oversize;
    }
    hear(reply);
  }
  return std::exchange(news_, {});
}

void LlmProposer::hear(const ModelReply& reply) {
  const auto found = under_way_.find(reply.request_id);
  if (found == under_way_.end()) return;
  const Under under = std::move(found->second);
  under_way_.erase(found);
  ReplyRecord record{.request_id = reply.request_id,
                     .model = under.record.model,
                     .step = under.record.step,
                     .outcome = reply.failure.value_or(ReplyOutcome::delivered),
                     .by_connection = reply.failure.has_value(),
                     .detail = reply.detail,
                     .text = reply.text,
                     .usage = reply.usage,
                     .latency_s = reply.latency_s,
                     .attempts = reply.attempts,
                     .troubles = reply.troubles};
  record.usage.money = price_of(record.model).money(reply.usage.tokens_in, reply.usage.tokens_out);
  const bool priced =
      std::any_of(setup_.options.models.begin(), setup_.options.models.end(),
                  [](const ModelPrice& model) { return model.in > 0 || model.out > 0; });
  bandit_.note_cost(record.model,
                    priced ? record.usage.money
                           : static_cast<double>(reply.usage.tokens_in + reply.usage.tokens_out));
  if (!reply.failure) failures_ = 0;
  // The record goes before what comes of it: whoever reads the archive sees cause, then effect.
  const std::size_t place = news_.size();
  news_.emplace_back(Remark{});
  if (under.ideas)
    hear_ideas(*under.ideas, reply, record);
  else
    hear_code(*under.work, reply, record);
  if (reply.failure) note_failure(reply);
  news_[place] = std::move(record);
}

void LlmProposer::note_failure(const ModelReply& reply) {
  if (reply.is_final && !finished_) {
    finished_ = refused_ = true;
    news_.push_back(Remark{setup_.name + " is asked no more: " + reply.detail});
    return;
  }
  const double rest_s =
      std::min(kLongestRest,
               setup_.options.back_off.first_s * static_cast<double>(1 << std::min(failures_, 12)));
  ++failures_;
  rests_until_s_ = now_s() + rest_s;
}

// An ask that brings nothing new costs as much as any other: a model that has nothing left to say
// is not asked for ever.
void LlmProposer::note_fruit(bool fruitful) {
  fruitless_ = fruitful ? 0 : fruitless_ + 1;
  if (fruitless_ < setup_.options.patience || finished_) return;
  finished_ = true;
  news_.push_back(Remark{fmt::format("{} is asked no more: {} asks in a row brought no new idea",
                                     setup_.name, fruitless_)});
}

void LlmProposer::hear_ideas(const Asked& asked, const ModelReply& reply, ReplyRecord& record) {
  if (reply.failure) {
    // Trouble with the connection says nothing of the model's ideas.
    const bool was_heard = *reply.failure != ReplyOutcome::unreachable &&
                           *reply.failure != ReplyOutcome::http_error &&
                           *reply.failure != ReplyOutcome::timed_out;
    if (was_heard) note_fruit(false);
    return;
  }
  IdeasReply read = read_ideas(reply.text, setup_.options.ideas);
  record.outcome = read.outcome;
  record.detail = read.detail;
  std::vector<WordedIdea> fresh;
  for (WordedIdea& idea : read.ideas) {
    if (find_same_idea(idea.hypothesis, proposed_) != nullptr ||
        find_same_idea(idea.hypothesis, asked.ask.context->known_ideas) != nullptr)
      continue;
    proposed_.push_back(idea.hypothesis);
    fresh.push_back(std::move(idea));
  }
  if (!read.ideas.empty() && fresh.empty()) record.outcome = ReplyOutcome::duplicate;
  if (const std::size_t known = read.ideas.size() - fresh.size(); known > 0)
    record.detail += fmt::format("{}{} of {} ideas were known", record.detail.empty() ? "" : "; ",
                                 known, read.ideas.size());
  note_fruit(!fresh.empty());
  write_code(asked, fresh);
}

void LlmProposer::write_code(const Asked& asked, const std::vector<WordedIdea>& ideas) {
  for (std::size_t i = 0; i < ideas.size(); ++i)
    for (int variant = 1; variant <= setup_.options.variants; ++variant)
      code({.ask = asked.ask.number,
            .idea = static_cast<int>(i) + 1,
            .model = asked.model,
            .task = {ideas[i], variant, setup_.options.variants},
            .context = asked.ask.context});
}

void LlmProposer::code(Work work) {
  Under under{.record = {.id = fmt::format("a{}/code{}.{}", work.ask, work.idea, work.task.variant),
                         .ask = work.ask,
                         .model = work.model}};
  Prompt prompt = code_prompt(*work.context, work.task);
  under.work = std::move(work);
  announce(std::move(under), "code", std::move(prompt));
}

void LlmProposer::mend(Work work, std::string what, std::string log) {
  if (work.round >= setup_.options.repairs || refused_) return;
  ++work.round;
  Under under{.record = {.id = fmt::format("a{}/repair{}.{}.{}", work.ask, work.idea,
                                           work.task.variant, work.round),
                         .ask = work.ask,
                         .model = work.model}};
  Prompt prompt = repair_prompt(*work.context, {.code = work.task,
                                                .reply = work.last_reply,
                                                .what = std::move(what),
                                                .log = std::move(log)});
  under.work = std::move(work);
  announce(std::move(under), "repair", std::move(prompt));
}

// What to tell the model of a reply that was no candidate; empty: asking again is no use.
std::string complaint_about(ReplyOutcome outcome, const std::string& detail) {
  switch (outcome) {
    case ReplyOutcome::no_code_block:
      return "it holds no fenced code block.";
    case ReplyOutcome::several_files:
    case ReplyOutcome::wrong_contract:
    case ReplyOutcome::garbled:
      return detail + ".";
    case ReplyOutcome::truncated:
      return "it ends before its code does; write less around it.";
    default:
      return {};
  }
}

void LlmProposer::hear_code(Work work, const ModelReply& reply, ReplyRecord& record) {
  work.last_reply = reply.text;
  CodeReply read;
  if (reply.failure) {
    read.outcome = *reply.failure;
    read.detail = reply.detail;
  } else {
    read = read_code(reply.text);
    record.outcome = read.outcome;
    record.detail = read.detail;
  }
  if (read.outcome != ReplyOutcome::delivered) {
    if (std::string what = complaint_about(read.outcome, read.detail);
        !what.empty() && !reply.text.empty())
      mend(std::move(work), std::move(what), {});
    return;
  }
  const Delivery delivery = delivery_of(work, record.request_id, std::move(read.source));
  delivered_[delivery.id] = std::move(work);
  news_.push_back(delivery);
}

Delivery LlmProposer::delivery_of(const Work& work, const std::string& request_id,
                                  std::string source) const {
  Delivery delivery{.id = "d:" + request_id, .request_id = request_id, .model = work.model};
  delivery.idea = {.family = work.task.idea.family,
                   .category = work.task.idea.category,
                   .text = work.task.idea.hypothesis,
                   .expected = work.task.idea.expected,
                   .source = "llm:" + work.model};
  if (!work.task.idea.risk.empty()) delivery.idea.expected += "; risk: " + work.task.idea.risk;
  delivery.source = std::move(source);
  delivery.source_name =
      fmt::format("{}_{}_{}{}", work.task.idea.family, work.ask, work.task.variant,
                  work.context->target == "cuda" ? ".cu" : ".cpp");
  return delivery;
}

void LlmProposer::tell(const Judgement& judgement) {
  const auto found = delivered_.find(judgement.delivery_id);
  if (found == delivered_.end()) return;
  bandit_.note_gain(found->second.model, judgement.gain);
  if (!judgement.first || judgement.duplicate) return;
  // Nobody's fault, the engine's, or a machine that cannot run it: there is nothing to mend.
  if (blame_of(judgement.verdict) != Blame::candidate) return;
  mend(found->second, fmt::format("the verdict is {}.", to_string(judgement.verdict)),
       judgement.reason + "\n" + judgement.log);
}

}  // namespace

RoundEstimate estimate_round(const LlmOptions& options, std::size_t statement_bytes) {
  constexpr std::size_t kRestOfPrompt = 24'000;  // the guide, a source or two, what was tried
  constexpr std::int64_t kIdeasOut = 1'000;
  constexpr std::int64_t kSourceOut = 3'000;
  const std::int64_t prompt = estimate_tokens(statement_bytes + kRestOfPrompt);
  const int sources = options.ideas * options.variants;
  const int mended = options.repairs > 0 ? (sources + 1) / 2 : 0;
  const std::int64_t in = prompt * (1 + sources + mended) + kSourceOut * mended;
  const std::int64_t out = kIdeasOut + kSourceOut * (sources + mended);
  RoundEstimate estimate{.tokens = in + out};
  for (const ModelPrice& model : options.models)
    estimate.money = std::max(estimate.money, model.money(in, out));
  return estimate;
}

std::unique_ptr<Proposer> make_llm_proposer(LlmSetup setup,
                                            std::unique_ptr<ModelEndpoint> endpoint) {
  return std::make_unique<LlmProposer>(std::move(setup), std::move(endpoint));
}

}  // namespace kbeam
