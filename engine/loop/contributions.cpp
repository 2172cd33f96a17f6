#include "loop/contributions.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "model/json_forms.h"
#include "model/verdict.h"

namespace kbeam {
namespace {

struct Share {
  bool asks_models = false;
  int requests = 0;
  int retries = 0;
  int replies = 0;
  std::map<std::string, int> outcomes;
  std::int64_t tokens_in = 0;
  std::int64_t tokens_out = 0;
  std::int64_t tokens_estimated = 0;
  double money = 0;
  double latency_s = 0;
  std::set<std::string> ideas;
  std::set<std::string> sources;
  int judged = 0;
  int accepted = 0;
  int champions = 0;
  double log_gain = 0;
};

Json share_json(const Share& share, std::size_t cases) {
  Json json = Json::object();
  if (share.asks_models)
    json = {{"requests", share.requests},
            {"retries", share.retries},
            {"outcomes", share.outcomes},
            {"tokens_in", share.tokens_in},
            {"tokens_out", share.tokens_out},
            {"tokens_estimated", share.tokens_estimated},
            {"money", share.money},
            {"latency_s", share.replies > 0 ? Json(share.latency_s / share.replies) : Json()}};
  json["ideas"] = share.ideas.size();
  json["sources"] = share.sources.size();
  json["judged"] = share.judged;
  json["accepted"] = share.accepted;
  json["success_rate"] =
      share.judged > 0 ? Json(static_cast<double>(share.accepted) / share.judged) : Json();
  json["champions"] = share.champions;
  json["gain"] = std::exp(share.log_gain / static_cast<double>(std::max<std::size_t>(1, cases)));
  return json;
}

class Accounts {
 public:
  Result<Json> settle(const std::vector<Event>& events) {
    for (const Event& event : events) {
      ASSIGN_OR_RETURN(const Json body,
                       parse_json(event.body, "event " + std::to_string(event.sequence)));
      try {
        book(event.kind, body);
      } catch (const Json::exception& trouble) {
        return Error{ErrorCode::corrupt, "account for event " + std::to_string(event.sequence),
                     trouble.what(), "the record was written by another version of kbeam"};
      }
    }
    return as_json();
  }

 private:
  struct IdeaFacts {
    std::string proposer;
    std::string source;
    std::string category;
  };

  void book(const std::string& kind, const Json& body);
  void book_reply(const Json& body);
  void book_champion(const Json& body);
  Json as_json() const;

  template <typename Change>
  void of_idea(const std::string& idea_id, const Change& change) {
    const auto found = ideas_.find(idea_id);
    if (found == ideas_.end()) return;
    change(total_);
    change(proposers_[found->second.proposer]);
    change(models_[found->second.source]);
    change(categories_[found->second.category]);
  }
  template <typename Change>
  void of_request(const Json& body, const Change& change) {
    const std::string proposer = body.at("proposer").get<std::string>();
    const std::string kind = proposer.substr(0, proposer.find(':'));  // "llm", "agent"
    for (Share* share : {&total_, &proposers_[proposer],
                         &models_[kind + ":" + body.at("model").get<std::string>()]}) {
      share->asks_models = true;
      change(*share);
    }
  }

  std::map<std::string, IdeaFacts> ideas_;
  std::map<std::string, std::string> idea_of_candidate_;
  std::map<std::string, double> champion_speedup_;  // by case
  Share total_;
  std::map<std::string, Share> proposers_, models_, categories_;
};

void Accounts::book(const std::string& kind, const Json& body) {
  if (kind == "idea") {
    const std::string id = body.at("id").get<std::string>();
    const std::string source = body.at("source").get<std::string>();
    ideas_[id] = {source, source, body.at("category").get<std::string>()};
  } else if (kind == "delivery") {
    const std::string id = body.at("idea_id").get<std::string>();
    if (const auto found = ideas_.find(id); found != ideas_.end())
      found->second.proposer = body.at("proposer").get<std::string>();
    if (!body.at("taken").get<bool>()) return;
    const std::string hash = body.at("source_hash").get<std::string>();
    of_idea(id, [&](Share& share) { share.sources.insert(hash); });
  } else if (kind == "candidate") {
    const std::string idea = body.at("idea_id").get<std::string>();
    idea_of_candidate_[body.at("id").get<std::string>()] = idea;
    of_idea(idea, [&](Share& share) {
      share.ideas.insert(idea);
      for (const Json& row : body.at("rows"))
        share.sources.insert(row.at("source_hash").get<std::string>());
    });
  } else if (kind == "observation") {
    const auto verdict = parse_verdict(body.at("verdict").get<std::string>());
    of_idea(idea_of_candidate_[body.at("candidate_id").get<std::string>()], [&](Share& share) {
      ++share.judged;
      if (verdict == Verdict::accepted) ++share.accepted;
    });
  } else if (kind == "champion") {
    book_champion(body);
  } else if (kind == "model_request") {
    of_request(body, [](Share& share) { ++share.requests; });
  } else if (kind == "model_reply") {
    book_reply(body);
  }
}

void Accounts::book_reply(const Json& body) {
  of_request(body, [&](Share& share) {
    ++share.replies;
    share.retries += std::max(0, body.at("attempts").get<int>() - 1);
    ++share.outcomes[body.at("outcome").get<std::string>()];
    share.tokens_in += body.at("tokens_in").get<std::int64_t>();
    share.tokens_out += body.at("tokens_out").get<std::int64_t>();
    share.tokens_estimated += body.at("tokens_estimated").get<std::int64_t>();
    share.money += body.at("money").get<double>();
    share.latency_s += body.at("latency_s").get<double>();
  });
}

void Accounts::book_champion(const Json& body) {
  const std::string case_name = body.at("case_name").get<std::string>();
  const double speedup = body.at("speedup").get<double>();
  const auto before = champion_speedup_.find(case_name);
  const double was = before == champion_speedup_.end() ? 1 : before->second;
  champion_speedup_[case_name] = speedup;
  of_idea(idea_of_candidate_[body.at("candidate_id").get<std::string>()], [&](Share& share) {
    ++share.champions;
    if (speedup > 0 && was > 0) share.log_gain += std::log(speedup / was);
  });
}

Json Accounts::as_json() const {
  const std::size_t cases = champion_speedup_.size();
  const auto list = [&](const std::map<std::string, Share>& shares) {
    Json array = Json::array();
    for (const auto& [name, share] : shares) {
      Json one{{"name", name}};
      one.update(share_json(share, cases));
      array.push_back(std::move(one));
    }
    return array;
  };
  return {{"total", share_json(total_, cases)},
          {"proposers", list(proposers_)},
          {"models", list(models_)},
          {"categories", list(categories_)}};
}

}  // namespace

Result<Json> who_did_what(const Archive& archive) {
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events());
  return Accounts().settle(events);
}

}  // namespace kbeam
