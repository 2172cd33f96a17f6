#include "apps/cli/model_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/runs.h"
#include "loop/model_proposers.h"
#include "propose/http_endpoint.h"
#include "propose/llm_options.h"
#include "propose/llm_proposer.h"
#include "propose/problem_statement.h"
#include "propose/secret.h"

namespace kbeam::cli {
namespace {

using Kind = OptionSpec::Kind;

constexpr std::string_view kLlm = "llm:";
constexpr std::string_view kReplay = "replay:";

Result<double> parse_money(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value <= 0)
    return Error{ErrorCode::bad_input, "read --money " + text, "it is no positive number",
                 "write an amount in the currency of the prices, such as --money 2.50"};
  return value;
}

bool has_prices(const Json& proposers) {
  for (const Json& one : proposers)
    if (one.contains("llm"))
      for (const Json& model : one.at("llm").at("models"))
        if (model.at("in").get<double>() > 0 || model.at("out").get<double>() > 0) return true;
  return false;
}

}  // namespace

std::vector<OptionSpec> model_access_options() {
  return {
      {"--model", "NAME[=IN/OUT]",
       "a model at llm:URL, with its prices of a million tokens; may be given again", "",
       Kind::repeated},
      {"--api", "openai|anthropic", "the protocol of llm:URL; guessed from it when left out", ""},
      {"--key", "env:NAME|file:PATH", "where the key for llm:URL is", ""},
      {"--ca", "FILE",
       "PEM certificates of the authority behind llm:URL, instead of those of this machine", ""},
      {"--llm", "NAME=VALUE", "a setting of docs/models.md, such as ideas=5; may be given again",
       "", Kind::repeated},
  };
}

std::vector<OptionSpec> model_options() {
  std::vector<OptionSpec> options = model_access_options();
  for (const OptionSpec& budget : {
           OptionSpec{"--tokens", "N",
                      "stop before models have taken more tokens than this, in and out", ""},
           OptionSpec{"--money", "AMOUNT", "stop before models have cost more than this", ""},
       })
    options.push_back(budget);
  return options;
}

Result<LlmOptions> read_model(const Options& options, const std::string& proposer) {
  std::string authorities = options.get("--ca");
  // Recorded: a resumed run may begin elsewhere.
  if (!authorities.empty()) authorities = std::filesystem::absolute(authorities).string();
  if (!proposer.starts_with(kLlm))
    return Error{ErrorCode::bad_input, "ask a model at '" + proposer + "'",
                 "that is no model's address", "write llm:URL, such as llm:https://host/v1"};
  ASSIGN_OR_RETURN(LlmOptions llm, parse_llm_options({.url = proposer.substr(kLlm.size()),
                                                      .api = options.get("--api"),
                                                      .models = options.all("--model"),
                                                      .key = options.get("--key"),
                                                      .authorities = authorities,
                                                      .settings = options.all("--llm")}));
  RETURN_IF_ERROR(check_authorities(authorities));
  // Told now rather than after the compiler and the problem are ready.
  if (const Result<Secret> key = Secret::load({llm.key_source}); !key.ok()) return key.error();
  return llm;
}

bool names_model(const std::string& proposer) {
  return proposer.starts_with(kLlm) || proposer.starts_with(kReplay);
}

Result<Json> model_entries(const Options& options, const std::string& proposer) {
  if (proposer.starts_with(kReplay)) {
    Options named = options;
    named.values["RUN"] = {proposer.substr(kReplay.size())};
    ASSIGN_OR_RETURN(const std::filesystem::path run, find_run(named));
    return replay_entries(run);
  }
  ASSIGN_OR_RETURN(const LlmOptions llm, read_model(options, proposer));
  return Json::array({{{"kind", "llm"}, {"name", proposer}, {"llm", to_json(llm)}}});
}

Result<void> choose_model_budgets(const Options& options, CampaignSetup& setup) {
  const bool any = std::any_of(setup.proposers.begin(), setup.proposers.end(), asks_model);
  for (const char* option : {"--model", "--api", "--key", "--ca", "--llm", "--tokens", "--money"})
    if (options.has(option) && !any)
      return Error{ErrorCode::bad_input, "run with " + std::string(option),
                   "no model is asked in this campaign", "add --proposer llm:URL"};
  Budget& budget = setup.config.budget;
  if (options.has("--tokens")) {
    ASSIGN_OR_RETURN(const std::uint64_t most, parse_number(options.get("--tokens"), "--tokens"));
    if (most == 0 || most > std::uint64_t{1} << 50)
      return Error{ErrorCode::bad_input, "read --tokens " + options.get("--tokens"),
                   "that is no budget",
                   "write how many tokens may be used; leave it out for no limit"};
    budget.tokens = static_cast<std::int64_t>(most);
  }
  if (options.has("--money")) {
    ASSIGN_OR_RETURN(budget.money, parse_money(options.get("--money")));
    if (!has_prices(setup.proposers))
      return Error{ErrorCode::bad_input, "run with --money", "no model has a price",
                   "name the prices of a million tokens: --model NAME=IN/OUT"};
  }
  return {};
}

std::string estimate_text(const CampaignSetup& setup) {
  std::string text;
  const std::size_t statement = problem_statement(setup.problem).size();
  for (const Json& one : setup.proposers) {
    if (one.at("kind") != "llm") continue;
    const Result<LlmOptions> options = llm_options_from_json(one.at("llm"));
    if (!options.ok()) continue;
    const RoundEstimate round = estimate_round(*options, statement);
    text += fmt::format("{}estimate: a round of {} takes about {} tokens", text.empty() ? "" : "\n",
                        one.at("name").get<std::string>(), round.tokens);
    if (round.money > 0) text += fmt::format(" and {:.4f} in money", round.money);
    const Budget& budget = setup.config.budget;
    if (budget.tokens > 0)
      text += fmt::format("; --tokens has room for about {:.1f} rounds",
                          static_cast<double>(budget.tokens) / static_cast<double>(round.tokens));
    if (budget.money > 0 && round.money > 0)
      text += fmt::format("; --money for about {:.1f}", budget.money / round.money);
  }
  return text;
}

}  // namespace kbeam::cli
