#include "model/json_forms.h"

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace kbeam {
namespace {

// The fields of every noun, listed once: the writer and the reader below both walk these lists, so
// that neither can know a field that the other lacks.
template <typename T, typename Noun>
concept Is = std::same_as<std::remove_const_t<T>, Noun>;

void walk(auto& visit, Is<Idea> auto& idea) {
  visit("id", idea.id);
  visit("family", idea.family);
  visit("category", idea.category);
  visit("text", idea.text);
  visit("expected", idea.expected);
  visit("parents", idea.parents);
  visit("source", idea.source);
}

void walk(auto& visit, Is<Row> auto& row) {
  visit("source", row.source);
  visit("source_name", row.source_name);
  visit("knobs", row.knobs);
  visit("axis_least", row.axis_least);
  visit("axis_most", row.axis_most);
}

void walk(auto& visit, Is<Candidate> auto& candidate) {
  visit("id", candidate.id);
  visit("idea_id", candidate.idea_id);
  visit("family", candidate.family);
  visit("parent", candidate.parent);
  visit("origin", candidate.origin);
  visit("rows", candidate.rows);
}

void walk(auto& visit, Is<Artifact> auto& artifact) {
  visit("verdict", artifact.verdict);
  visit("log", artifact.log);
  visit("reason", artifact.reason);
  visit("module", artifact.module);
  visit("key", artifact.key);
  visit("object_hash", artifact.object_hash);
  visit("build_s", artifact.build_s);
  visit("from_cache", artifact.from_cache);
}

void walk(auto& visit, Is<CheckFigure> auto& figure) {
  visit("name", figure.name);
  visit("value", figure.value);
  visit("limit", figure.limit);
  visit("unit", figure.unit);
  visit("where", figure.where);
}

void walk(auto& visit, Is<CheckReport> auto& report) {
  visit("case_name", report.case_name);
  visit("verdict", report.verdict);
  visit("grade", report.grade);
  visit("sentence", report.sentence);
  visit("figures", report.figures);
  visit("outputs_checked", report.outputs_checked);
  visit("seed", report.seed);
  visit("key", report.key);
}

void walk(auto& visit, Is<PairedSamples> auto& samples) {
  visit("candidate_ns", samples.candidate_ns);
  visit("reference_ns", samples.reference_ns);
  visit("candidate_first", samples.candidate_first);
  visit("process", samples.process);
}

void walk(auto& visit, Is<PairedSummary> auto& summary) {
  visit("candidate_ns", summary.candidate_ns);
  visit("reference_ns", summary.reference_ns);
  visit("speedup", summary.speedup);
  visit("low", summary.low);
  visit("high", summary.high);
  visit("confidence", summary.confidence);
  visit("pairs", summary.pairs);
  visit("comparison", summary.comparison);
}

void walk(auto& visit, Is<Measurement> auto& measurement) {
  visit("case_name", measurement.case_name);
  visit("reference", measurement.reference);
  visit("reference_speedup", measurement.reference_speedup);
  visit("threads", measurement.threads);
  visit("samples", measurement.samples);
  visit("stopping_rule", measurement.stopping_rule);
  visit("stop_reason", measurement.stop_reason);
  visit("noise_floor", measurement.noise_floor);
  visit("summary", measurement.summary);
}

void walk(auto& visit, Is<Evaluation> auto& evaluation) {
  visit("id", evaluation.id);
  visit("candidate_id", evaluation.candidate_id);
  visit("stage", evaluation.stage);
  visit("verdict", evaluation.verdict);
  visit("reason", evaluation.reason);
  visit("grade", evaluation.grade);
  visit("sandbox", evaluation.sandbox);
  visit("weaknesses", evaluation.weaknesses);
  visit("checks", evaluation.checks);
  visit("measurements", evaluation.measurements);
  visit("build_s", evaluation.build_s);
  visit("check_s", evaluation.check_s);
  visit("measure_s", evaluation.measure_s);
  visit("started_unix_ms", evaluation.started_unix_ms);
  visit("ended_unix_ms", evaluation.ended_unix_ms);
}

void walk(auto& visit, Is<Environment> auto& environment) {
  visit("cpu", environment.cpu);
  visit("cpus", environment.cpus);
  visit("instruction_sets", environment.instruction_sets);
  visit("kernel", environment.kernel);
  visit("compiler", environment.compiler);
  visit("compile_flags", environment.compile_flags);
  visit("tool_version", environment.tool_version);
  visit("libraries", environment.libraries);
}

void walk(auto& visit, Is<Budget> auto& budget) {
  visit("wall_s", budget.wall_s);
  visit("evaluations", budget.evaluations);
}

void walk(auto& visit, Is<CampaignConfig> auto& config) {
  visit("run_id", config.run_id);
  visit("problem_name", config.problem_name);
  visit("problem_folder", config.problem_folder);
  visit("problem_hash", config.problem_hash);
  visit("target", config.target);
  visit("proposer", config.proposer);
  visit("grade", config.grade);
  visit("goal", config.goal);
  visit("budget", config.budget);
  visit("seed", config.seed);
  visit("beam", config.beam);
  visit("threads", config.threads);
  visit("candidate_cpus", config.candidate_cpus);
  visit("judge_cpu", config.judge_cpu);
}

void walk(auto& visit, Is<FamilyState> auto& family) {
  visit("name", family.name);
  visit("text", family.text);
  visit("role", family.role);
  visit("evaluations", family.evaluations);
  visit("accepted", family.accepted);
  visit("since_gain", family.since_gain);
  visit("best_candidate", family.best_candidate);
  visit("best_speedup", family.best_speedup);
  visit("best_per_case", family.best_per_case);
  visit("retired", family.retired);
  visit("retired_why", family.retired_why);
}

void walk(auto& visit, Is<Champion> auto& champion) {
  visit("case_name", champion.case_name);
  visit("candidate_id", champion.candidate_id);
  visit("family", champion.family);
  visit("speedup", champion.speedup);
  visit("low", champion.low);
  visit("high", champion.high);
  visit("version", champion.version);
}

// Every value of the enums that travel as words.
constexpr std::array kComparisons{Comparison::faster, Comparison::same, Comparison::slower,
                                  Comparison::ambiguous};
constexpr std::array kSandboxLevels{SandboxLevel::none, SandboxLevel::rlimits,
                                    SandboxLevel::landlock_seccomp, SandboxLevel::namespaces};
constexpr std::array kStages{Stage::screen, Stage::confirm, Stage::promote, Stage::manual};
constexpr std::array kRoles{Role::exploit, Role::near_miss, Role::structural};

auto every_value(Verdict) {
  return all_verdicts();
}
const auto& every_value(Comparison) {
  return kComparisons;
}
const auto& every_value(SandboxLevel) {
  return kSandboxLevels;
}
const auto& every_value(Stage) {
  return kStages;
}
const auto& every_value(Role) {
  return kRoles;
}

template <typename T>
constexpr bool kIsVector = false;
template <typename T>
constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
constexpr bool kIsMap = false;
template <typename T>
constexpr bool kIsMap<std::map<std::string, T>> = true;

// ---- writing ----

Json write_value(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

template <typename T>
Json write_value(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (kIsVector<T>) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(write_value(element));
    return array;
  } else if constexpr (kIsMap<T>) {
    Json object = Json::object();
    for (const auto& [name, element] : value) object[name] = write_value(element);
    return object;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    Json object = Json::object();
    const auto visit = [&](const char* name, const auto& field) {
      object[name] = write_value(field);
    };
    walk(visit, value);
    return object;
  }
}

// ---- reading ----

// Keeps the first complaint; later fields are skipped.
class Reader {
 public:
  template <typename T>
  void read(const Json& json, const std::string& path, T& target);

  const std::optional<std::string>& complaint() const { return complaint_; }

 private:
  void expect(bool condition, const std::string& path, const Json& json, const char* wanted) {
    if (condition || complaint_) return;
    std::string found = json_text(json);
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    complaint_ = "field '" + path + "' should be " + wanted + ", but is " + found;
  }

  void read_real(const Json& json, const std::string& path, double& target);
  template <typename T>
  void read_integer(const Json& json, const std::string& path, T& target);
  template <typename T>
  void read_word(const Json& json, const std::string& path, T& target);
  template <typename T>
  void read_object(const Json& json, const std::string& path, T& target);

  std::optional<std::string> complaint_;
};

void Reader::read_real(const Json& json, const std::string& path, double& target) {
  if (json.is_number()) {
    target = json.get<double>();
  } else if (json == "nan") {
    target = std::numeric_limits<double>::quiet_NaN();
  } else if (json == "inf") {
    target = std::numeric_limits<double>::infinity();
  } else if (json == "-inf") {
    target = -std::numeric_limits<double>::infinity();
  } else {
    expect(false, path, json, "a number, \"nan\", \"inf\" or \"-inf\"");
  }
}

template <typename T>
void Reader::read_integer(const Json& json, const std::string& path, T& target) {
  expect(json.is_number_integer(), path, json, "an integer");
  if (complaint_) return;
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  expect(fits, path, json, "within the range of its type");
  if (fits) target = json.get<T>();
}

template <typename T>
void Reader::read_word(const Json& json, const std::string& path, T& target) {
  for (const T value : every_value(target))
    if (json == to_string(value)) {
      target = value;
      return;
    }
  expect(false, path, json, "one of the known words");
}

template <typename T>
void Reader::read_object(const Json& json, const std::string& path, T& target) {
  expect(json.is_object(), path.empty() ? "(whole record)" : path, json, "an object");
  const auto visit = [&](const char* name, auto& field) {
    if (complaint_) return;
    const std::string inner = path.empty() ? name : path + "." + name;
    const auto found = json.find(name);
    if (found == json.end())
      complaint_ = "field '" + inner + "' is missing";
    else
      read(*found, inner, field);
  };
  walk(visit, target);
}

template <typename T>
void Reader::read(const Json& json, const std::string& path, T& target) {
  if (complaint_) return;
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
    expect(json.is_string(), path, json, "a string");
    if (json.is_string()) target = json.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    expect(json.is_boolean(), path, json, "true or false");
    if (json.is_boolean()) target = json.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    read_real(json, path, target);
  } else if constexpr (std::is_integral_v<T>) {
    read_integer(json, path, target);
  } else if constexpr (std::is_enum_v<T>) {
    read_word(json, path, target);
  } else if constexpr (kIsVector<T>) {
    expect(json.is_array(), path, json, "an array");
    if (!json.is_array()) return;
    target.clear();
    target.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i)
      read(json[i], path + "[" + std::to_string(i) + "]", target.emplace_back());
  } else if constexpr (kIsMap<T>) {
    expect(json.is_object(), path, json, "an object");
    if (!json.is_object()) return;
    target.clear();
    for (const auto& [name, element] : json.items()) read(element, path + "." + name, target[name]);
  } else {
    read_object(json, path, target);
  }
}

template <typename T>
Result<T> read_noun(const Json& json, const char* noun) {
  T target;
  Reader reader;
  reader.read(json, "", target);
  if (reader.complaint())
    return Error{ErrorCode::corrupt, std::string("read ") + noun + " from JSON",
                 *reader.complaint(),
                 "the record was damaged or written by another version of kbeam"};
  return target;
}

}  // namespace

Json to_json(const Idea& idea) {
  return write_value(idea);
}
Json to_json(const Candidate& candidate) {
  return write_value(candidate);
}
Json to_json(const Artifact& artifact) {
  return write_value(artifact);
}
Json to_json(const CheckReport& report) {
  return write_value(report);
}
Json to_json(const PairedSamples& samples) {
  return write_value(samples);
}
Json to_json(const Measurement& measurement) {
  return write_value(measurement);
}
Json to_json(const Evaluation& evaluation) {
  return write_value(evaluation);
}
Json to_json(const Environment& environment) {
  return write_value(environment);
}
Json to_json(const CampaignConfig& config) {
  return write_value(config);
}
Json to_json(const FamilyState& family) {
  return write_value(family);
}
Json to_json(const Champion& champion) {
  return write_value(champion);
}

Result<Idea> idea_from_json(const Json& json) {
  return read_noun<Idea>(json, "an idea");
}
Result<Candidate> candidate_from_json(const Json& json) {
  return read_noun<Candidate>(json, "a candidate");
}
Result<Artifact> artifact_from_json(const Json& json) {
  return read_noun<Artifact>(json, "an artifact");
}
Result<CheckReport> check_report_from_json(const Json& json) {
  return read_noun<CheckReport>(json, "a check report");
}
Result<PairedSamples> paired_samples_from_json(const Json& json) {
  return read_noun<PairedSamples>(json, "samples");
}
Result<Measurement> measurement_from_json(const Json& json) {
  return read_noun<Measurement>(json, "a measurement");
}
// A stored record cannot smuggle in a speed that make_evaluation would have dropped.
Result<Evaluation> evaluation_from_json(const Json& json) {
  ASSIGN_OR_RETURN(Evaluation evaluation, read_noun<Evaluation>(json, "an evaluation"));
  return make_evaluation(std::move(evaluation));
}
Result<Environment> environment_from_json(const Json& json) {
  return read_noun<Environment>(json, "an environment");
}
Result<CampaignConfig> campaign_config_from_json(const Json& json) {
  return read_noun<CampaignConfig>(json, "a campaign");
}
Result<FamilyState> family_from_json(const Json& json) {
  return read_noun<FamilyState>(json, "a family");
}
Result<Champion> champion_from_json(const Json& json) {
  return read_noun<Champion>(json, "a champion");
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> parse_json(const std::string& text, const std::string& what) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& trouble) {
    return Error{ErrorCode::corrupt, "parse " + what + " as JSON", trouble.what(),
                 "the text is damaged or cut short"};
  }
}

}  // namespace kbeam
