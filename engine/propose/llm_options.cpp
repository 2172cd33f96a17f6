#include "propose/llm_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "base/spelling.h"

namespace kbeam {
namespace {

// One row a setting: the table is what is parsed and recorded.
struct Setting {
  const char* name;
  const char* text;
  double least;
  double most;
  bool is_whole;
  std::function<double(const LlmOptions&)> get;
  std::function<void(LlmOptions&, double)> set;
};

template <typename Pick>
Setting make_setting(const char* name, const char* text, double least, double most, Pick pick) {
  using Field = std::remove_reference_t<std::invoke_result_t<Pick, LlmOptions&>>;
  return {name,
          text,
          least,
          most,
          std::is_integral_v<Field>,
          [pick](const LlmOptions& options) {
            return static_cast<double>(pick(const_cast<LlmOptions&>(options)));
          },
          [pick](LlmOptions& options, double value) { pick(options) = static_cast<Field>(value); }};
}

const std::vector<Setting>& all_settings() {
  using Options = LlmOptions;
  static const std::vector<Setting> kSettings{
      make_setting("ideas", "ideas that one ask wants", 1, 20,
                   [](Options& o) -> int& { return o.ideas; }),
      make_setting("variants", "sources for each idea", 1, 10,
                   [](Options& o) -> int& { return o.variants; }),
      make_setting("repairs", "rounds in which a source that failed may be mended", 0, 10,
                   [](Options& o) -> int& { return o.repairs; }),
      make_setting("connections", "requests under way at once", 1, 64,
                   [](Options& o) -> int& { return o.connections; }),
      make_setting("a_minute", "requests in any minute; 0: no limit", 0, 100'000,
                   [](Options& o) -> int& { return o.requests_a_minute; }),
      make_setting("reply_tokens", "the longest reply that a model may write", 256, 1'000'000,
                   [](Options& o) -> int& { return o.reply_tokens; }),
      make_setting("patience", "asks in a row without a new idea until it is done", 1, 1'000'000,
                   [](Options& o) -> int& { return o.patience; }),
      make_setting("connect_s", "seconds to connect", 0.1, 600,
                   [](Options& o) -> double& { return o.limits.connect_s; }),
      make_setting("stall_s", "seconds of silence until a request is given up", 1, 3600,
                   [](Options& o) -> double& { return o.limits.stall_s; }),
      make_setting("total_s", "seconds that a request may take", 1, 86'400,
                   [](Options& o) -> double& { return o.limits.total_s; }),
      make_setting("reply_bytes", "bytes of a reply as sent", 10'000, 1e9,
                   [](Options& o) -> std::int64_t& { return o.limits.most_bytes; }),
      make_setting("attempts", "times that a request is sent at most", 1, 20,
                   [](Options& o) -> int& { return o.back_off.most_attempts; }),
      make_setting("wait_s", "seconds before the first retry; each doubles", 0.01, 600,
                   [](Options& o) -> double& { return o.back_off.first_s; }),
  };
  return kSettings;
}

std::optional<double> parse_plain(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size() ||
      !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<ModelPrice> parse_model(const std::string& text) {
  // A model's name may hold ':' and '/', so the price follows the last '='.
  const std::size_t equals = text.rfind('=');
  ModelPrice model{.model = text.substr(0, equals)};
  if (model.model.empty()) return std::nullopt;
  if (equals == std::string::npos) return model;
  const std::string price = text.substr(equals + 1);
  const std::size_t slash = price.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto in = parse_plain(std::string_view(price).substr(0, slash));
  const auto out = parse_plain(std::string_view(price).substr(slash + 1));
  if (!in || !out || *in < 0 || *out < 0) return std::nullopt;
  model.in = *in;
  model.out = *out;
  return model;
}

std::string set_one(LlmOptions& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  double value = std::nan("");
  if (equals != std::string::npos)
    value = parse_plain(std::string_view(text).substr(equals + 1)).value_or(value);
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) {
    names.emplace_back(setting.name);
    if (name != setting.name) continue;
    if (!(value >= setting.least && value <= setting.most) ||
        (setting.is_whole && value != std::floor(value)))
      return fmt::format("--llm {}: {} ({}) wants a {}number from {} to {}", text, name,
                         setting.text, setting.is_whole ? "whole " : "", setting.least,
                         setting.most);
    setting.set(options, value);
    return {};
  }
  const auto close = closest_word(name, names);
  return fmt::format("--llm {}: there is no setting '{}'{}", text, name,
                     close ? "; did you mean " + *close + "?" : "");
}

}  // namespace

Result<LlmOptions> parse_llm_options(const LlmArguments& arguments) {
  LlmOptions options{.url = arguments.url};
  std::string mistakes;
  const auto complain = [&](const std::string& mistake) {
    if (!mistake.empty()) mistakes += (mistakes.empty() ? "" : "\n  ") + mistake;
  };
  options.api = guess_api(options.url);
  if (arguments.api == "anthropic" || arguments.api == "openai")
    options.api = arguments.api == "openai" ? ModelApi::openai : ModelApi::anthropic;
  else if (!arguments.api.empty())
    complain("--api " + arguments.api + ": it is openai or anthropic");
  if (arguments.models.empty()) complain("--model is missing: name the model to be asked");
  for (const std::string& text : arguments.models) {
    if (const auto model = parse_model(text))
      options.models.push_back(*model);
    else
      complain("--model " + text + ": write NAME, or NAME=IN/OUT with prices of a million tokens");
  }
  options.key_source = arguments.key;
  if (!arguments.key.empty() && !arguments.key.starts_with("env:") &&
      !arguments.key.starts_with("file:"))
    complain("--key is env:NAME or file:PATH: a key itself does not belong on a command line");
  options.authorities = arguments.authorities;
  if (!arguments.authorities.empty() && arguments.url.starts_with("http://"))
    complain("--ca " + arguments.authorities + ": http:// has no certificate to check");
  for (const std::string& text : arguments.settings) complain(set_one(options, text));
  if (const auto url = request_url(options.api, options.url, !arguments.key.empty()); !url.ok())
    complain(url.error().text());
  if (!mistakes.empty())
    return Error{ErrorCode::bad_input, "set up the proposer llm", mistakes, "see docs/models.md"};
  return options;
}

std::vector<std::pair<std::string, std::string>> command_words(const LlmOptions& options) {
  std::vector<std::pair<std::string, std::string>> words;
  if (options.api != guess_api(options.url))
    words.emplace_back("--api", std::string(to_string(options.api)));
  for (const ModelPrice& model : options.models) {
    const bool is_free =
        model.in == 0 && model.out == 0 && model.model.find('=') == std::string::npos;
    words.emplace_back("--model", is_free
                                      ? model.model
                                      : fmt::format("{}={}/{}", model.model, model.in, model.out));
  }
  if (!options.key_source.empty()) words.emplace_back("--key", options.key_source);
  if (!options.authorities.empty()) words.emplace_back("--ca", options.authorities);
  const LlmOptions usual;
  for (const Setting& setting : all_settings())
    if (setting.get(options) != setting.get(usual))
      words.emplace_back("--llm", fmt::format("{}={}", setting.name, setting.get(options)));
  return words;
}

Json to_json(const LlmOptions& options) {
  Json models = Json::array();
  for (const ModelPrice& model : options.models)
    models.push_back({{"model", model.model}, {"in", model.in}, {"out", model.out}});
  Json settings = Json::object();
  for (const Setting& setting : all_settings()) settings[setting.name] = setting.get(options);
  return {{"url", options.url},
          {"api", std::string(to_string(options.api))},
          {"models", std::move(models)},
          {"key_source", options.key_source},
          {"authorities", options.authorities},
          {"settings", std::move(settings)}};
}

Result<LlmOptions> llm_options_from_json(const Json& json) {
  try {
    LlmArguments arguments{.url = json.at("url").get<std::string>(),
                           .api = json.at("api").get<std::string>()};
    for (const Json& model : json.at("models"))
      arguments.models.push_back(fmt::format("{}={}/{}", model.at("model").get<std::string>(),
                                             model.at("in").get<double>(),
                                             model.at("out").get<double>()));
    arguments.key = json.at("key_source").get<std::string>();
    arguments.authorities = json.value("authorities", "");
    for (const auto& [name, value] : json.at("settings").items())
      arguments.settings.push_back(fmt::format("{}={}", name, value.get<double>()));
    return parse_llm_options(arguments);
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read the settings of a proposer", trouble.what(),
                 "the run was written by another version of kbeam"};
  }
}

}  // namespace kbeam
