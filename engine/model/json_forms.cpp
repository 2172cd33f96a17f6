#include "model/json_forms.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/foreign_json.h"
#include "model/json_walk.h"

namespace kbeam {

static void walk(auto& visit, Is<Idea> auto& idea) {
  visit("id", idea.id);
  visit("family", idea.family);
  visit("category", idea.category);
  visit("text", idea.text);
  visit("expected", idea.expected);
  visit("parents", idea.parents);
  visit("source", idea.source);
}

static void walk(auto& visit, Is<Row> auto& row) {
  visit("source", row.source);
  visit("source_name", row.source_name);
  visit("knobs", row.knobs);
  visit("axis_least", row.axis_least);
  visit("axis_most", row.axis_most);
}

static void walk(auto& visit, Is<Candidate> auto& candidate) {
  visit("id", candidate.id);
  visit("idea_id", candidate.idea_id);
  visit("family", candidate.family);
  visit("parent", candidate.parent);
  visit("origin", candidate.origin);
  visit("rows", candidate.rows);
}

static void walk(auto& visit, Is<KernelResources> auto& kernel) {
  visit("registers", kernel.registers);
  visit("static_shared_bytes", kernel.static_shared_bytes);
  visit("spill_bytes", kernel.spill_bytes);
  visit("stack_bytes", kernel.stack_bytes);
  visit("max_threads", kernel.max_threads);
}

static void walk(auto& visit, Is<Artifact> auto& artifact) {
  visit("verdict", artifact.verdict);
  visit("log", artifact.log);
  visit("reason", artifact.reason);
  visit("module", artifact.module);
  visit("key", artifact.key);
  visit("object_hash", artifact.object_hash);
  visit("build_s", artifact.build_s);
  visit("from_cache", artifact.from_cache);
  visit("kernels", artifact.kernels);
}

static void walk(auto& visit, Is<CheckFigure> auto& figure) {
  visit("name", figure.name);
  visit("value", figure.value);
  visit("limit", figure.limit);
  visit("unit", figure.unit);
  visit("where", figure.where);
}

static void walk(auto& visit, Is<CheckReport> auto& report) {
  visit("case_name", report.case_name);
  visit("verdict", report.verdict);
  visit("grade", report.grade);
  visit("sentence", report.sentence);
  visit("figures", report.figures);
  visit("outputs_checked", report.outputs_checked);
  visit("seed", report.seed);
  visit("key", report.key);
}

static void walk(auto& visit, Is<PairedSamples> auto& samples) {
  visit("candidate_ns", samples.candidate_ns);
  visit("reference_ns", samples.reference_ns);
  visit("candidate_first", samples.candidate_first);
  visit("process", samples.process);
}

static void walk(auto& visit, Is<PairedSummary> auto& summary) {
  visit("candidate_ns", summary.candidate_ns);
  visit("reference_ns", summary.reference_ns);
  visit("speedup", summary.speedup);
  visit("low", summary.low);
  visit("high", summary.high);
  visit("confidence", summary.confidence);
  visit("pairs", summary.pairs);
  visit("comparison", summary.comparison);
}

static void walk(auto& visit, Is<Measurement> auto& measurement) {
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

static void walk(auto& visit, Is<PoolResult> auto& pool) {
  visit("cases", pool.cases);
  visit("passed", pool.passed);
  visit("speedup", pool.speedup);
}

static void walk(auto& visit, Is<GateResult> auto& gate) {
  visit("name", gate.name);
  visit("verdict", gate.verdict);
  visit("sentence", gate.sentence);
  visit("cases", gate.cases);
  visit("took_s", gate.took_s);
}

static void walk(auto& visit, Is<Evaluation> auto& evaluation) {
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
  visit("public", evaluation.public_pool);
  visit("private", evaluation.private_pool);
  visit("sealed", evaluation.sealed_pool);
  visit("generality_gap", evaluation.generality_gap);
  visit("held_out", evaluation.held_out);
  visit("sealed_seed", evaluation.sealed_seed);
  visit("gates", evaluation.gates);
  visit("build_s", evaluation.build_s);
  visit("check_s", evaluation.check_s);
  visit("measure_s", evaluation.measure_s);
  visit("started_unix_ms", evaluation.started_unix_ms);
  visit("ended_unix_ms", evaluation.ended_unix_ms);
}

static void walk(auto& visit, Is<Environment> auto& environment) {
  visit("cpu", environment.cpu);
  visit("cpus", environment.cpus);
  visit("instruction_sets", environment.instruction_sets);
  visit("kernel", environment.kernel);
  visit("compiler", environment.compiler);
  visit("compile_flags", environment.compile_flags);
  visit("tool_version", environment.tool_version);
  visit("libraries", environment.libraries);
}

static void walk(auto& visit, Is<Budget> auto& budget) {
  visit("wall_s", budget.wall_s);
  visit("evaluations", budget.evaluations);
  visit("device_s", budget.device_s);
  visit("tokens", budget.tokens);
  visit("money", budget.money);
}

static void walk(auto& visit, Is<CampaignConfig> auto& config) {
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
  visit("search", config.search);
  visit("beam", config.beam);
  visit("threads", config.threads);
  visit("candidate_cpus", config.candidate_cpus);
  visit("judge_cpu", config.judge_cpu);
}

static void walk(auto& visit, Is<FamilyState> auto& family) {
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

static void walk(auto& visit, Is<Champion> auto& champion) {
  visit("case_name", champion.case_name);
  visit("candidate_id", champion.candidate_id);
  visit("family", champion.family);
  visit("speedup", champion.speedup);
  visit("low", champion.low);
  visit("high", champion.high);
  visit("version", champion.version);
}

// Every value of the enums that travel as words.
static constexpr std::array kComparisons{Comparison::faster, Comparison::same, Comparison::slower,
                                         Comparison::ambiguous};
static constexpr std::array kSandboxLevels{SandboxLevel::none, SandboxLevel::rlimits,
                                           SandboxLevel::landlock_seccomp,
                                           SandboxLevel::namespaces};
static constexpr std::array kStages{Stage::screen, Stage::confirm, Stage::promote, Stage::manual};
static constexpr std::array kRoles{Role::exploit, Role::near_miss, Role::structural};

static auto every_value(Verdict) {
  return all_verdicts();
}
static const auto& every_value(Comparison) {
  return kComparisons;
}
static const auto& every_value(SandboxLevel) {
  return kSandboxLevels;
}
static const auto& every_value(Stage) {
  return kStages;
}
static const auto& every_value(Role) {
  return kRoles;
}

Json to_json(const Idea& idea) {
  return write_value(idea);
}
Json to_json(const Candidate& candidate) {
  return write_value(candidate);
}
Json to_json(const Artifact& artifact) {
  return write_value(artifact);
}
Json to_json(const KernelResources& kernel) {
  return write_value(kernel);
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
// Records from before CUDA name no kernels.
Result<Artifact> artifact_from_json(const Json& json) {
  if (!json.is_object() || json.contains("kernels"))
    return read_noun<Artifact>(json, "an artifact");
  Json complete = json;
  complete["kernels"] = Json::object();
  return read_noun<Artifact>(complete, "an artifact");
}
Result<KernelResources> kernel_resources_from_json(const Json& json) {
  return read_noun<KernelResources>(json, "a kernel's resources");
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
// Records from before models could be asked have no budget for them.
Result<CampaignConfig> campaign_config_from_json(const Json& json) {
  const auto budget = json.is_object() ? json.find("budget") : json.end();
  if (budget == json.end() || !budget->is_object() || budget->contains("tokens"))
    return read_noun<CampaignConfig>(json, "a campaign");
  Json complete = json;
  complete["budget"]["tokens"] = 0;
  complete["budget"]["money"] = 0.0;
  return read_noun<CampaignConfig>(complete, "a campaign");
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
  Json json = parse_foreign_json(text);
  if (!json.is_discarded()) return json;
  std::string why = fmt::format("it nests deeper than {} levels", kDeepestForeignJson);
  try {
    [[maybe_unused]] const Json deep = Json::parse(text);
  } catch (const Json::parse_error& trouble) {
    why = trouble.what();
  }
  return Error{ErrorCode::corrupt, "parse " + what + " as JSON", why,
               "the text is damaged or cut short"};
}

}  // namespace kbeam
