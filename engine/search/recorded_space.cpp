#include "search/recorded_space.h"

#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/foreign_json.h"

namespace kbeam {
namespace {

Error unreadable(const std::string& name, const std::string& what) {
  return {ErrorCode::bad_input, "read the recorded space " + name, what,
          "give a cache file of Kernel Tuner, a T4 results file, or one that `kbeam tune --record` "
          "wrote, as JSON or gzip"};
}

// A value as the knob's text: "16", "0.5", "true", a name.
std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::optional<double> positive_number(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  return std::isfinite(number) && number > 0 ? std::optional<double>(number) : std::nullopt;
}

Json parse_leniently(const std::string& text) {
  Json json = parse_foreign_json(text);
  if (!json.is_discarded()) return json;
  // An open cache: no closing braces, perhaps a comma after the last setting.
  std::string closed = text;
  while (!closed.empty() &&
         (std::isspace(static_cast<unsigned char>(closed.back())) != 0 || closed.back() == ','))
    closed.pop_back();
  return parse_foreign_json(closed + "}}");
}

class SpaceBuilder {
 public:
  explicit SpaceBuilder(std::string name) : name_(std::move(name)) {}

  void declare(const std::string& knob, const Json& choices) {
    Knob made{knob, "auto", "", {}};
    for (const Json& choice : choices) made.choices.push_back(value_text(choice));
    record_.knobs.push_back(std::move(made));
  }

  // Every knob of `from`, and of no other name.
  Result<void> add(const Json& from, std::optional<double> time_ms, std::string failure) {
    RecordedSetting setting;
    for (Knob& knob : record_.knobs) {
      const auto value = from.find(knob.name);
      if (value == from.end()) return unreadable(name_, "a setting does not say its " + knob.name);
      const std::string text = value_text(*value);
      if (std::find(knob.choices.begin(), knob.choices.end(), text) == knob.choices.end())
        knob.choices.push_back(text);
      setting.knobs[knob.name] = text;
    }
    if (!seen_.insert(setting.knobs).second) return {};
    setting.time_ms = time_ms;
    if (!time_ms) setting.failure = std::move(failure);
    record_.settings.push_back(std::move(setting));
    return {};
  }

  Result<SpaceRecord> finish(std::string kernel, std::string device) {
    record_.kernel = std::move(kernel);
    record_.device = std::move(device);
    const bool any_works =
        std::any_of(record_.settings.begin(), record_.settings.end(),
                    [](const RecordedSetting& setting) { return setting.time_ms.has_value(); });
    if (!any_works) return unreadable(name_, "no setting in it has a time");
    for (Knob& knob : record_.knobs)
      if (knob.fallback.empty()) knob.fallback = knob.choices.front();
    return std::move(record_);
  }

  SpaceRecord& record() { return record_; }

 private:
  std::string name_;
  SpaceRecord record_;
  std::set<KnobValues> seen_;
};

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

Result<SpaceRecord> parse_cache(const Json& json, const std::string& name) {
  SpaceBuilder builder(name);
  const Json& choices = json["tune_params"];
  if (!choices.is_object() || !json["cache"].is_object())
    return unreadable(name, "tune_params and cache are not objects");
  for (const auto& [knob, values] : choices.items()) builder.declare(knob, values);
  for (const auto& [key, entry] : json["cache"].items()) {
    const auto time = entry.find("time");
    if (time == entry.end()) return unreadable(name, "setting " + key + " has no time");
    RETURN_IF_ERROR(builder.add(entry, positive_number(*time), value_text(*time)));
  }
  if (const auto ours = json.find("kbeam"); ours != json.end() && ours->contains("defaults"))
    for (Knob& knob : builder.record().knobs)
      if (const auto value = (*ours)["defaults"].find(knob.name);
          value != (*ours)["defaults"].end())
        knob.fallback = value_text(*value);
  return builder.finish(text_of(json, "kernel_name"), text_of(json, "device_name"));
}

std::optional<double> t4_time(const Json& result) {
  const auto measurements = result.find("measurements");
  if (measurements == result.end()) return std::nullopt;
  for (const Json& measurement : *measurements)
    if (text_of(measurement, "name") == "time" && measurement.contains("value"))
      return positive_number(measurement["value"]);
  return std::nullopt;
}

// T4 lists no choices: they are what occurs.
Result<SpaceRecord> parse_t4(const Json& json, const std::string& name) {
  SpaceBuilder builder(name);
  const Json& results = json["results"];
  if (!results.is_array() || results.empty() || !results.front().contains("configuration"))
    return unreadable(name, "results is no list of configurations");
  for (const auto& [knob, value] : results.front()["configuration"].items())
    builder.declare(knob, Json::array());
  for (const Json& result : results) {
    if (!result.contains("configuration")) return unreadable(name, "a result has no configuration");
    const std::string invalidity = text_of(result, "invalidity");
    const bool valid = invalidity.empty() || invalidity == "correct";
    RETURN_IF_ERROR(
        builder.add(result["configuration"], valid ? t4_time(result) : std::nullopt, invalidity));
  }
  const auto metadata = json.find("metadata");
  return builder.finish(metadata == json.end() ? "" : text_of(*metadata, "kernel_name"), "");
}

// What Kernel Tuner writes in place of the time of a setting that failed.
const char* failure_word(const std::string& failure) {
  return failure.starts_with("build") ? "CompilationFailedConfig" : "RuntimeFailedConfig";
}

// A number where the text is one, so that other tuners see an order.
Json value_json(const std::string& text) {
  const Json parsed = parse_foreign_json(text);
  return parsed.is_number() && parsed.dump() == text ? parsed : Json(text);
}

}  // namespace

Result<SpaceRecord> parse_space(const std::string& text, const std::string& name) {
  const Json json = parse_leniently(text);
  if (!json.is_object()) return unreadable(name, "it is no JSON object");
  try {
    if (json.contains("cache") && json.contains("tune_params")) return parse_cache(json, name);
    if (json.contains("results")) return parse_t4(json, name);
  } catch (const nlohmann::json::exception& trouble) {
    return unreadable(name, trouble.what());
  }
  return unreadable(name, "it has neither a cache with tune_params nor results");
}

std::string space_text(const SpaceRecord& record, const std::map<KnobValues, Json>& details,
                       const Json& facts) {
  Json head = {{"schema_version", "1.0.0"},
               {"device_name", record.device},
               {"kernel_name", record.kernel},
               {"problem_size", 1},
               {"tune_params_keys", Json::array()},
               {"tune_params", Json::object()},
               {"objective", "time"},
               {"kbeam", facts}};
  for (const Knob& knob : record.knobs) {
    head["tune_params_keys"].push_back(knob.name);
    head["kbeam"]["defaults"][knob.name] = value_json(knob.fallback);
    Json& choices = head["tune_params"][knob.name] = Json::array();
    for (const std::string& choice : knob.choices) choices.push_back(value_json(choice));
  }
  // A setting a line: what differs between two recordings can be read.
  std::string text = head.dump();
  text.pop_back();
  text += ",\n\"cache\": {\n";
  for (const RecordedSetting& setting : record.settings) {
    std::string key;
    Json entry = Json::object();
    for (const Knob& knob : record.knobs) {
      const std::string& value = setting.knobs.at(knob.name);
      key += (key.empty() ? "" : ",") + value;
      entry[knob.name] = value_json(value);
    }
    entry["time"] = setting.time_ms ? Json(*setting.time_ms) : Json(failure_word(setting.failure));
    if (const auto more = details.find(setting.knobs); more != details.end())
      entry.update(more->second);
    text += Json(key).dump() + ": " + entry.dump();
    text += &setting == &record.settings.back() ? "\n" : ",\n";
  }
  return text + "}\n}\n";
}

RecordedSpace::RecordedSpace(SpaceRecord record) : record_(std::move(record)) {
  std::vector<double> times;
  for (std::size_t i = 0; i < record_.settings.size(); ++i) {
    const RecordedSetting& setting = record_.settings[i];
    index_[setting.knobs] = i;
    if (setting.time_ms) times.push_back(*setting.time_ms);
  }
  failures_ = record_.settings.size() - times.size();
  CHECK(!times.empty(), "a recorded space has a setting with a time");
  std::sort(times.begin(), times.end());
  best_ms_ = times.front();
  median_ms_ = times[times.size() / 2];
}

KnobSpace RecordedSpace::space(std::uint64_t seed) const {
  std::vector<Knob> knobs = record_.knobs;
  Random random(seed);
  const KnobValues& start = record_.settings[random.below(record_.settings.size())].knobs;
  for (Knob& knob : knobs) knob.fallback = start.at(knob.name);
  KnobSpace space(std::move(knobs), {});
  std::vector<Setting> settings;
  for (const RecordedSetting& recorded : record_.settings)
    settings.push_back(*space.find_setting(recorded.knobs));
  space.restrict_to(std::move(settings));
  return space;
}

std::optional<double> RecordedSpace::time_ms(const KnobValues& knobs) const {
  const auto found = index_.find(knobs);
  return found == index_.end() ? std::nullopt : record_.settings[found->second].time_ms;
}

}  // namespace kbeam
