#include "report/synthetic_campaign.h"

#include <fmt/format.h>
#include <kbeam/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace kbeam {
namespace {

struct SyntheticFamily {
  const char* name;
  const char* text;
  const char* category;
  std::array<double, 6> best;  // speed-up per case at its best knobs
};

constexpr std::array<int, 6> kSizes{16, 32, 64, 128, 256, 512};
constexpr std::array<SyntheticFamily, 4> kFamilies{{
    {"interleaved_lanes",
     "Put one matrix in each SIMD lane, so that no step needs a shuffle.",
     "memory layout",
     {11.5, 8.2, 2.6, 1.1, 0.6, 0.4}},
    {"unblocked_in_cache",
     "Apply each reflector at once while the matrix sits in the L1 cache.",
     "algorithm",
     {5.1, 4.8, 3.1, 1.7, 0.9, 0.5}},
    {"blocked_wy",
     "Gather reflectors into a panel and update the rest with a packed micro-kernel.",
     "blocking",
     {2.2, 3.4, 4.1, 3.6, 2.3, 1.7}},
    {"recursive",
     "Split the columns in halves until they fit, so that all updates are products.",
     "algorithm",
     {1.4, 2.1, 2.9, 3.1, 2.5, 1.9}},
}};

std::string case_name(std::size_t index) {
  return fmt::format("n{}", kSizes[index]);
}

void add_problem(ReportInput& input) {
  Problem& problem = input.problem;
  problem.name = "batched_qr";
  problem.title = "Batched Householder QR, FP32 in, compact (H, tau) out";
  problem.summary =
      "Factor every matrix of a batch. Right on every input: graded, deficient, huge, tiny, NaN.";
  problem.grades = {{"fp32", "per column ||(R - Q'A) e_j|| <= 400 eps ||A e_j||"}};
  problem.baselines = {
      {"lapack", "the fastest of sgeqrf, sgeqr2 and sgeqrt for each case", {}, {}}};
  problem.regime_axis = "n";
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    Case timed{case_name(i), {{"n", kSizes[i]}, {"m", kSizes[i]}}, "dense"};
    timed.timed = true;
    problem.cases.push_back(timed);
    const double n = kSizes[i], batch = 1e6 / (n * n);
    CaseCeilings ceilings{timed.name, 0, batch * 4.0 / 3 * n * n * n, 8e6, {}};
    ceilings.baseline_ns = ceilings.flops / (2.2 * std::pow(n / 16, 0.75));
    ceilings.ceiling_ns = {{"sgemm", ceilings.flops / (18 * std::pow(n / 16, 0.35))},
                           {"memory roof", ceilings.bytes / 9.5}};
    input.ceilings.push_back(ceilings);
  }
  problem.cases.push_back(Case{"nan", {{"n", 16}}, "one_nan"});
}

PairedSummary summary_of(double speedup, double reference_ns, double half_width) {
  PairedSummary summary;
  summary.speedup = speedup;
  summary.reference_ns = reference_ns;
  summary.candidate_ns = reference_ns / speedup;
  summary.low = speedup * (1 - half_width);
  summary.high = speedup * (1 + half_width);
  summary.confidence = 0.99;
  summary.pairs = 9;
  summary.comparison = summary.low > 1.01    ? Comparison::faster
                       : summary.high < 0.99 ? Comparison::slower
                                             : Comparison::ambiguous;
  return summary;
}

// Makes attempts and remembers what the report needs at the end.
class Maker {
 public:
  Maker(ReportInput& input, std::uint64_t seed, int checks)
      : input_(input), random_(seed), checks_(checks) {
    for (const SyntheticFamily& family : kFamilies) {
      Idea idea{fmt::format("idea-{}", family.name),      family.name, family.category, family.text,
                "faster where the matrix fits the cache", {},          "builtin"};
      input_.ideas.push_back(idea);
      FamilyState state;
      state.name = family.name;
      state.text = family.text;
      input_.families.push_back(state);
      input_.roles.push_back({0, family.name, "structural"});
    }
  }

  void screen(int number, int total) {
    const std::size_t family = random_.below(kFamilies.size());
    const Candidate& candidate = add_candidate(family);
    Evaluation evaluation = blank(candidate, Stage::screen, number);
    if (random_.uniform() < 0.22) {
      reject(evaluation);
    } else {
      const double progress = std::min(1.0, 0.35 + 0.65 * number / (0.7 * total));
      const double quality = progress * (0.55 + 0.45 * random_.uniform());
      for (std::size_t i = 0; i < kSizes.size(); ++i)
        add_measurement(evaluation, i, kFamilies[family].best[i] * quality, 0.05);
    }
    tell_family(family, evaluation);
    change_role(family, number);
    input_.evaluations.push_back(make_evaluation(evaluation));
  }

  // Crowns, for one case, the fastest candidate that was screened so far.
  void confirm(int number) {
    const std::size_t which = random_.below(kSizes.size());
    const Evaluation* fastest = nullptr;
    for (const Evaluation& evaluation : input_.evaluations)
      if (evaluation.stage == Stage::screen && !evaluation.measurements.empty() &&
          (fastest == nullptr || speed(evaluation, which) > speed(*fastest, which)))
        fastest = &evaluation;
    if (fastest == nullptr) return screen(number, number);
    const double speedup = speed(*fastest, which);
    if (speedup < 1.05) return screen(number, number);
    const Candidate candidate = find(fastest->candidate_id);
    Evaluation evaluation = blank(candidate, Stage::confirm, number);
    add_measurement(evaluation, which, speedup * 0.99, 0.015);
    input_.evaluations.push_back(evaluation);
    Champion champion{case_name(which),
                      candidate.id,
                      candidate.family,
                      speedup * 0.99,
                      speedup * 0.975,
                      speedup * 1.005,
                      0};
    for (const LadderStep& step : input_.ladder)
      if (step.champion.case_name == champion.case_name) {
        champion.version = step.champion.version + 1;
        if (step.champion.speedup >= champion.speedup) return;
      }
    input_.ladder.push_back({number, champion});
    input_.decisions[candidate.id] = "accepted as champion of " + champion.case_name;
  }

  void promote(int number) {
    Candidate portfolio;
    portfolio.family = "portfolio";
    portfolio.origin = "assembled";
    std::array<double, 6> speedups;
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      speedups[i] = 1.02;
      std::string id = input_.candidates.front().id;
      for (const LadderStep& step : input_.ladder)
        if (step.champion.case_name == case_name(i)) {
          id = step.champion.candidate_id;
          speedups[i] = step.champion.speedup;
          input_.champions.push_back(step.champion);
        }
      Row row = find(id).rows.front();
      row.axis_least = i == 0 ? 1 : kSizes[i] * 3 / 4 + 1;
      row.axis_most = i + 1 == kSizes.size() ? INT64_MAX : kSizes[i + 1] * 3 / 4;
      portfolio.rows.push_back(row);
    }
    portfolio.id = candidate_id(portfolio);
    input_.candidates.push_back(portfolio);
    Evaluation evaluation = blank(portfolio, Stage::promote, number);
    for (std::size_t i = 0; i < kSizes.size(); ++i)
      add_measurement(evaluation, i, speedups[i] * 0.985, 0.012);
    input_.evaluations.push_back(evaluation);
    input_.decisions[portfolio.id] = "winner: faster on fresh seeds";
    summarise(evaluation);
  }

 private:
  static double speed(const Evaluation& evaluation, std::size_t which) {
    return evaluation.measurements.at(which).summary.speedup;
  }

  Candidate find(const std::string& id) const {
    return *std::ranges::find(input_.candidates, id, &Candidate::id);
  }

  // Most candidates vary knobs of a known source; an agent now and then changes the source itself.
  const Candidate& add_candidate(std::size_t family) {
    Candidate candidate;
    candidate.family = kFamilies[family].name;
    candidate.idea_id = input_.ideas[family].id;
    candidate.origin = random_.below(2) == 0 ? "builtin/random" : "builtin/local_search";
    const std::string& best = input_.families[family].best_candidate;
    if (!best.empty() && random_.below(2) == 0) candidate.parent = best;
    Row row;
    row.source = candidate.parent.empty() ? first_source(family) : find(best).rows.front().source;
    if (!candidate.parent.empty() && random_.below(3) == 0) {
      candidate.origin = "agent:synthetic";
      row.source +=
          fmt::format("\n// Step {} keeps one more row in registers.\n", input_.candidates.size());
    }
    row.source_name = fmt::format("{}.cpp", kFamilies[family].name);
    row.knobs = {{"kPanel", std::to_string(8 << random_.below(4))},
                 {"kWidth", std::to_string(8 << random_.below(2))},
                 {"kTrial", std::to_string(input_.candidates.size())}};
    candidate.rows = {row};
    candidate.id = candidate_id(candidate);
    return input_.candidates.emplace_back(candidate);
  }

  static std::string first_source(std::size_t family) {
    return fmt::format(
        "// {}\n#include <kbeam/candidate.h>\n\nKBEAM_KNOB(int, kPanel, 32, 8, 16, 32, 64);\n",
        kFamilies[family].text);
  }

  // A family that leads exploits; the others are told apart by their share of its speed.
  void change_role(std::size_t family, int number) {
    double most = 0;
    for (const FamilyState& state : input_.families) most = std::max(most, state.best_speedup);
    FamilyState& state = input_.families[family];
    const Role role = state.best_speedup >= 0.95 * most ? Role::exploit
                      : state.evaluations < 12          ? Role::structural
                                                        : Role::near_miss;
    if (role == state.role) return;
    state.role = role;
    input_.roles.push_back({number, state.name, std::string(to_string(role))});
  }

  Evaluation blank(const Candidate& candidate, Stage stage, int number) {
    Evaluation evaluation;
    evaluation.id = fmt::format("e{}", number);
    evaluation.candidate_id = candidate.id;
    evaluation.stage = stage;
    evaluation.verdict = Verdict::accepted;
    evaluation.grade = "fp32";
    evaluation.sandbox = SandboxLevel::namespaces;
    evaluation.started_unix_ms = 1'767'225'600'000 + number * 1400;
    evaluation.ended_unix_ms = evaluation.started_unix_ms + 1300;
    for (int i = 0; i < checks_; ++i) {
      CheckReport report{"nan", Verdict::accepted, "fp32", "", {}, 3, random_.bits()};
      if (i > 0) report.case_name = fmt::format("shape_{}", i);
      report.figures = {
          {"column_residual", 20 + 30 * random_.uniform(), 160, "eps", "matrix 3, column 7"}};
      for (const char* figure : {"orthogonality", "below_diagonal", "tau"})
        if (checks_ > 1)
          report.figures.push_back({figure, random_.uniform(), 2, "n eps", "matrix 0, column 13"});
      evaluation.checks.push_back(report);
    }
    return evaluation;
  }

  void reject(Evaluation& evaluation) {
    constexpr std::array kWays{
        std::pair{Verdict::wrong_value,
                  "case rank_deficient, matrix 11, column 5: 9312 eps, limit 160"},
        std::pair{Verdict::build_failed, "static assertion failed: a panel holds whole vectors"},
        std::pair{Verdict::not_finite, "case huge: H is not finite at matrix 0, row 2, column 1"},
        std::pair{Verdict::timed_out, "case n512 took more than 10 s"},
        std::pair{Verdict::wrong_value, "case near_rank, matrix 2, column 31: 188 eps, limit 160"},
        std::pair{Verdict::too_noisy, "pairs spread by 41 %"},
    };
    const auto& [verdict, reason] = kWays[random_.below(kWays.size())];
    evaluation.verdict = verdict;
    evaluation.reason = reason;
    input_.decisions[evaluation.candidate_id] = "rejected";
  }

  void add_measurement(Evaluation& evaluation, std::size_t which, double speedup,
                       double half_width) {
    Measurement measurement;
    measurement.case_name = case_name(which);
    measurement.reference = "lapack";
    measurement.stopping_rule = evaluation.stage == Stage::promote ? "promote 9 x 3" : "screen 5";
    measurement.stop_reason = "all pairs taken";
    measurement.noise_floor = 0.01;
    measurement.summary = summary_of(speedup, input_.ceilings[which].baseline_ns, half_width);
    const int pairs = evaluation.stage == Stage::promote ? 27 : 5;
    for (int i = 0; i < pairs; ++i) {
      measurement.samples.reference_ns.push_back(measurement.summary.reference_ns *
                                                 (1 + 0.01 * random_.normal()));
      measurement.samples.candidate_ns.push_back(measurement.summary.candidate_ns *
                                                 (1 + 0.01 * random_.normal()));
      measurement.samples.candidate_first.push_back(static_cast<std::uint8_t>(i % 2));
      measurement.samples.process.push_back(i / 9);
    }
    evaluation.measurements.push_back(measurement);
  }

  void tell_family(std::size_t family, const Evaluation& evaluation) {
    FamilyState& state = input_.families[family];
    ++state.evaluations;
    if (evaluation.verdict != Verdict::accepted) return;
    ++state.accepted;
    double log_sum = 0;
    for (const Measurement& measurement : evaluation.measurements)
      log_sum += std::log(measurement.summary.speedup);
    const double geomean = std::exp(log_sum / static_cast<double>(evaluation.measurements.size()));
    if (geomean <= state.best_speedup) return;
    state.best_speedup = geomean;
    state.best_candidate = evaluation.candidate_id;
  }

  void summarise(const Evaluation& promotion) {
    Json cases = Json::array();
    double log_sum = 0;
    for (const Measurement& measurement : promotion.measurements) {
      const PairedSummary& summary = measurement.summary;
      log_sum += std::log(summary.speedup);
      cases.push_back({{"name", measurement.case_name},
                       {"baseline_ns", summary.reference_ns},
                       {"candidate_ns", summary.candidate_ns},
                       {"speedup", summary.speedup},
                       {"low", summary.low},
                       {"high", summary.high},
                       {"comparison", to_string(summary.comparison)}});
    }
    input_.summary["winner"] = {{"candidate_id", promotion.candidate_id},
                                {"verdict", "accepted"},
                                {"grade", "fp32"},
                                {"assurance", "namespaces"},
                                {"worst_column_error_eps", 47.3},
                                {"limit_eps", 160},
                                {"speedup_geomean", std::exp(log_sum / 6)},
                                {"cases", cases}};
    for (Measurement measurement : promotion.measurements) {
      measurement.threads = 2;
      measurement.summary = summary_of(measurement.summary.speedup * 0.97,
                                       measurement.summary.reference_ns * 0.55, 0.02);
      input_.all_cores.push_back(measurement);
    }
  }

  ReportInput& input_;
  Random random_;
  int checks_;
};

}  // namespace

ReportInput make_synthetic_campaign(int attempts, std::uint64_t seed, int checks) {
  ReportInput input;
  input.config.run_id = "synthetic-7f3a";
  input.config.problem_name = "batched_qr";
  input.config.problem_hash = "9f2c51d0a7be";
  input.config.seed = seed;
  input.config.budget.wall_s = 180;
  input.rerun = fmt::format("kbeam run batched_qr --seed {} --budget 180s", seed);
  input.environment = {"AMD EPYC 7R13 (synthetic)",
                       2,
                       {"avx2", "fma"},
                       "Linux 6.1.0",
                       "g++ 12.2.0",
                       {"-O3", "-march=native", "-ffp-contract=fast"},
                       "0.1.0",
                       {{"openblas", "0.3.21 Zen"}}};
  add_problem(input);
  input.summary = {{"run_id", input.config.run_id},
                   {"tool_version", "0.1.0"},
                   {"problem", "batched_qr"},
                   {"target", "cpu"},
                   {"threads", 1},
                   {"winner", nullptr},
                   {"baseline", "lapack"},
                   {"evaluations", attempts},
                   {"evaluations_per_minute", 43.2},
                   {"engine_overhead_fraction", 0.031},
                   {"budgets", Json::array({{{"name", "wall time"}, {"text", "177 of 180 s"}},
                                            {{"name", "device time"}, {"text", "101 s"}}})},
                   {"stop_reason", "budget_wall"}};
  if (attempts == 0) return input;
  Maker maker(input, seed, checks);
  for (int number = 1; number < attempts; ++number) {
    if (number > 6 && number % 6 == 0)
      maker.confirm(number);
    else
      maker.screen(number, attempts);
  }
  maker.promote(attempts);
  FamilyState& retired = input.families[1];
  retired.retired = true;
  retired.retired_why = "no champion in 30 evaluations, and 2.1 x behind in every case";
  input.roles.push_back({attempts * 3 / 4, retired.name, "retired"});
  return input;
}

}  // namespace kbeam
