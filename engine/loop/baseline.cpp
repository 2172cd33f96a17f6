#include "loop/baseline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "build/source_scan.h"
#include "measure/statistics.h"
#include "model/json_forms.h"
#include "problem/problem_library.h"
#include "search/search.h"
#include "search/tuner.h"

namespace kbeam {
namespace {

constexpr int kChoiceRepeats = 3;  // calls a setting and case when baselines are ranked
constexpr int kCeilingRepeats = 7;
constexpr int kMostSettings = 64;  // of the knobs of one baseline
// A plain copy reads each output line before it writes it; streaming stores do not, and move up to
// a third less. The rest of the margin covers a copy that was timed in a noisy moment.
constexpr double kRoofMargin = 2.5;

// Tells of a step that took long, when it ends: no attempt is shown before the baseline stands.
class Step {
 public:
  Step(Progress& progress, std::string what)
      : progress_(progress), what_(std::move(what)), began_ns_(clock_.monotonic_ns()) {}
  ~Step() {
    constexpr double kWorthALine = 1;
    const double took_s = static_cast<double>(clock_.monotonic_ns() - began_ns_) * 1e-9;
    if (took_s >= kWorthALine) progress_.event(fmt::format("{}: {:.1f} s", what_, took_s));
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

 private:
  SystemClock clock_;
  Progress& progress_;
  std::string what_;
  std::int64_t began_ns_;
};

std::string on_threads(int threads) {
  return fmt::format("on {} thread{}", threads, threads == 1 ? "" : "s");
}

std::vector<KnobValues> every_setting(const KnobSpace& space) {
  std::vector<KnobValues> settings{{}};
  for (const Knob& knob : space.knobs()) {
    std::vector<KnobValues> longer;
    for (const KnobValues& setting : settings)
      for (const std::string& choice : knob.choices) {
        longer.push_back(setting);
        longer.back()[knob.name] = choice;
      }
    settings = std::move(longer);
  }
  std::erase_if(settings, [&](const KnobValues& setting) { return !space.allows(setting); });
  return settings;
}

Candidate one_row(const std::string& source, const std::string& name, const KnobValues& knobs) {
  Candidate candidate;
  candidate.family = "baseline";
  candidate.origin = "baseline";
  candidate.rows.push_back({source, name, knobs});
  candidate.id = candidate_id(candidate);
  return candidate;
}

// Every setting's time on each case, on as many threads.
class Ranking {
 public:
  struct Entry {
    double ns = std::numeric_limits<double>::infinity();
    Candidate candidate;
  };
  explicit Ranking(int threads) : threads_(threads) {}

  int threads() const { return threads_; }
  void add(const std::string& case_name, Entry entry) {
    entries_[case_name].push_back(std::move(entry));
  }
  // Null: none ran on this case.
  const Entry* fastest(const std::string& case_name) const {
    const auto found = entries_.find(case_name);
    if (found == entries_.end() || found->second.empty()) return nullptr;
    return &*std::ranges::min_element(found->second, {}, &Entry::ns);
  }
  // It proved wrong.
  void drop(const std::string& case_name, const std::string& candidate_id) {
    std::erase_if(entries_[case_name],
                  [&](const Entry& entry) { return entry.candidate.id == candidate_id; });
  }

 private:
  int threads_;
  std::map<std::string, std::vector<Entry>> entries_;
};

// Ranks every setting of one baseline on every case. Returns why none of them ran, or nothing.
Result<std::string> rank_settings(const MachineBench& bench, const BaselineSpec& spec,
                                  Ranking& ranking, BaselineFacts& facts) {
  ASSIGN_OR_RETURN(const std::string source, read_file(spec.source));
  const SourceKnobs scanned = scan_knobs(source);
  const std::vector<KnobValues> settings =
      every_setting(KnobSpace(scanned.knobs, scanned.constraints));
  if (settings.size() > kMostSettings)
    return Error{
        ErrorCode::bad_input, "rank the settings of baseline " + spec.name,
        fmt::format("its knobs span {} settings, more than {}", settings.size(), kMostSettings),
        "give its knobs fewer choices in " + spec.source.string()};
  // What takes so much longer than the fastest so far is not repeated.
  const auto longest_calls_s = [&] {
    constexpr double kHopeless = 4;
    constexpr double kLeast = 0.5;  // a first call pays for loading the library
    std::map<std::string, double> longest_s;
    for (const Case& the_case : bench.problem.timed_cases())
      if (const Ranking::Entry* const fastest = ranking.fastest(the_case.name))
        longest_s[the_case.name] = std::max(kHopeless * fastest->ns * 1e-9, kLeast);
    return longest_s;
  };
  const Step step(bench.progress,
                  fmt::format("timed baseline {} {}", spec.name, on_threads(ranking.threads())));
  std::string why_not;
  int ran = 0;
  for (const KnobValues& knobs : settings) {
    const Candidate candidate = one_row(source, spec.source.filename().string(), knobs);
    const BuiltCandidate built = bench.builds.build_trusted(candidate, spec.link);
    if (built.engine_error) return *built.engine_error;
    if (const Artifact* failed = built.failed())
      return Error{ErrorCode::bad_input, "build baseline " + spec.name,
                   failed->reason + "\n" + failed->log,
                   "install what it links, or mend " + spec.source.string()};
    const Subject subject = bench.builds.subject_of(candidate, candidate.id);
    const auto times = bench.judge.time_trusted({.subject = subject,
                                                 .cases = bench.problem.timed_cases(),
                                                 .repeats = kChoiceRepeats,
                                                 .threads = ranking.threads(),
                                                 .longest_call_s = longest_calls_s()});
    for (const auto& [case_name, timed] : times) {
      if (!timed.ok()) {  // too slow here, or not made for this shape: another one is the baseline
        why_not = timed.failure.sentence;
        continue;
      }
      ++ran;
      for (const auto& [key, note] : timed.value->notes) facts.notes[key] = note;
      ranking.add(case_name, {timed.value->median_ns, candidate});
      if (ranking.threads() > 1) continue;
      double& best_ns =
          facts.ranked_ns[spec.name].try_emplace(case_name, timed.value->median_ns).first->second;
      best_ns = std::min(best_ns, timed.value->median_ns);
    }
    bench.progress.attempt(fmt::format("baseline {} {} {}", spec.name, describe_knobs(knobs),
                                       on_threads(ranking.threads())));
  }
  return ran > 0 ? std::string() : why_not;
}

Result<Candidate> baseline_portfolio(const Problem& problem, const Ranking& ranking,
                                     const std::string& name) {
  std::vector<Champion> champions;
  std::vector<RegimePoint> points;
  std::map<std::string, Candidate> candidates;
  for (const auto& [case_name, value] : regime_points(problem)) {
    const Ranking::Entry* const fastest = ranking.fastest(case_name);
    if (fastest == nullptr)
      return Error{ErrorCode::unavailable, "choose a baseline for case " + case_name,
                   "none of " + name + " ran on it and was right",
                   "a campaign without an honest baseline proves nothing: add one to problem.toml"};
    const Candidate& candidate = fastest->candidate;
    champions.push_back({.case_name = case_name, .candidate_id = candidate.id});
    points.push_back({case_name, value});
    candidates[candidate.id] = candidate;
  }
  Candidate portfolio = assemble_portfolio(champions, points, candidates);
  portfolio.family = "baseline";
  portfolio.id = "baseline:" + name;
  return portfolio;
}

Result<void> measure_ceilings(const MachineBench& bench, BaselineFacts& facts) {
  for (const CeilingSpec& spec : bench.problem.ceilings) {
    const Step step(bench.progress, "timed ceiling " + spec.name);
    ASSIGN_OR_RETURN(const std::string source, read_file(spec.source));
    const Candidate candidate = one_row(source, spec.source.filename().string(), {});
    const BuiltCandidate built = bench.builds.build_trusted(candidate, spec.link);
    if (built.engine_error) return *built.engine_error;
    if (const Artifact* failed = built.failed())
      return Error{ErrorCode::bad_input, "build ceiling " + spec.name,
                   failed->reason + "\n" + failed->log,
                   "install what it links, or mend " + spec.source.string()};
    const auto times =
        bench.judge.time_trusted({.subject = bench.builds.subject_of(candidate, spec.name),
                                  .cases = bench.problem.timed_cases(),
                                  .repeats = kCeilingRepeats,
                                  .longest_call_s = {}});
    for (const auto& [case_name, timed] : times) {
      if (!timed.ok()) continue;  // the report shows the ceilings that run here
      CeilingFacts& ceiling = facts.ceilings[case_name];
      // The ceiling says how much work it did; the case would take its own share of that time.
      const auto work = [&timed = timed](const char* key) {
        const auto found = timed.value->notes.find(key);
        return found == timed.value->notes.end() ? 0.0
                                                 : std::strtod(found->second.c_str(), nullptr);
      };
      if (work("flops") > 0)
        ceiling.ns[spec.name] = timed.value->least_ns * ceiling.flops / work("flops");
      else if (work("bytes") > 0)
        ceiling.ns[spec.name] = timed.value->least_ns * ceiling.bytes / work("bytes");
    }
  }
  return {};
}

// Fills in what the A/A control says, or returns the case on which the baseline itself is wrong.
Result<std::optional<std::string>> run_control(const MachineBench& bench, BaselineFacts& facts) {
  const Step step(bench.progress, "A/A control of " + facts.name);
  const Subject subject = bench.builds.subject_of(facts.portfolio, facts.portfolio.id);
  CompareRequest request{.candidate = subject, .reference = subject};
  request.timed_cases = bench.problem.timed_cases();
  request.check_cases = request.timed_cases;
  request.rule = bench.judge.rules().control;
  request.most_s = bench.control_most_s;
  const Evaluation control = bench.judge.compare(request);
  facts.control_s = control.check_s + control.measure_s;
  if (control.verdict != Verdict::accepted) {
    const bool blames_it = control.verdict != Verdict::engine_failed && !control.checks.empty();
    if (blames_it) return std::optional(control.checks.back().case_name);
    return Error{ErrorCode::unavailable, "run the A/A control on baseline " + facts.name,
                 std::string(to_string(control.verdict)) + ": " + control.reason,
                 "a baseline must itself be right on every timed case; see `kbeam doctor`"};
  }
  for (const Measurement& measurement : control.measurements) {
    facts.case_ns[measurement.case_name] = measurement.summary.reference_ns;
    facts.noise[measurement.case_name] = aa_noise(measurement.samples, request.rule.confidence);
    const std::vector<int>& process = measurement.samples.process;
    facts.control_calls =
        std::max(facts.control_calls, static_cast<int>(process.size()) + process.back() + 1);
  }
  return std::optional<std::string>();
}

// The fastest baseline of each regime that is right on all its timed cases.
Result<void> choose_baseline(const MachineBench& bench, Ranking& ranking, BaselineFacts& facts) {
  while (true) {
    ASSIGN_OR_RETURN(facts.portfolio, baseline_portfolio(bench.problem, ranking, facts.name));
    ASSIGN_OR_RETURN(const std::optional<std::string> wrong_on, run_control(bench, facts));
    if (!wrong_on) return {};
    // The regime's own case names its row; the case that failed may be another of the same regime.
    const std::int64_t value =
        bench.problem.find_case(*wrong_on)->axes.at(bench.problem.regime_axis);
    for (const auto& [case_name, point] : regime_points(bench.problem)) {
      if (point != value) continue;
      const Candidate wrong = ranking.fastest(case_name)->candidate;
      ranking.drop(case_name, wrong.id);
      bench.progress.event(fmt::format(
          "baseline {} {} is wrong on {}: the next fastest serves there",
          wrong.rows.front().source_name, describe_knobs(wrong.rows.front().knobs), *wrong_on));
    }
  }
}

}  // namespace

std::vector<std::pair<std::string, std::int64_t>> regime_points(const Problem& problem) {
  std::vector<std::pair<std::string, std::int64_t>> points;
  std::set<std::int64_t> seen;
  for (const Case& the_case : problem.timed_cases()) {
    const auto value = the_case.axes.find(problem.regime_axis);
    if (value != the_case.axes.end() && seen.insert(value->second).second)
      points.emplace_back(the_case.name, value->second);
  }
  std::sort(points.begin(), points.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return points;
}

Result<BaselineFacts> measure_baseline(const MachineBench& bench) {
  BaselineFacts facts;
  for (const Case& the_case : bench.problem.timed_cases()) {
    CeilingFacts& ceiling = facts.ceilings[the_case.name];
    ceiling.flops = bench.code.flops(CaseAdapter(the_case));
    ceiling.bytes = bench.code.bytes(CaseAdapter(the_case));
  }
  Ranking alone(1);
  Ranking together(bench.all_cores);
  for (const BaselineSpec& spec : bench.problem.baselines) {
    for (Ranking* ranking : {&alone, &together}) {
      if (ranking == &together && bench.all_cores == 1) continue;
      ASSIGN_OR_RETURN(const std::string why_not, rank_settings(bench, spec, *ranking, facts));
      if (!why_not.empty())
        return Error{
            ErrorCode::unavailable, "run baseline " + spec.name, why_not,
            "install the library that it needs, or remove it from problem.toml: a campaign without "
            "an honest baseline proves nothing"};
    }
    facts.name = facts.name.empty() ? spec.name : facts.name + "+" + spec.name;
  }
  RETURN_IF_ERROR(choose_baseline(bench, alone, facts));
  facts.all_cores_portfolio = facts.portfolio;
  if (bench.all_cores > 1) {
    ASSIGN_OR_RETURN(facts.all_cores_portfolio,
                     baseline_portfolio(bench.problem, together, facts.name));
  }
  RETURN_IF_ERROR(measure_ceilings(bench, facts));
  if (bench.candidate_cpu) facts.roof = measure_machine_roof(*bench.candidate_cpu, SystemClock());
  apply_baseline(bench.judge, facts);
  return facts;
}

Result<void> restore_baseline(const MachineBench& bench, const BaselineFacts& facts) {
  for (const BaselineSpec& spec : bench.problem.baselines) {
    Candidate of_this_source = facts.portfolio;
    of_this_source.rows.insert(of_this_source.rows.end(), facts.all_cores_portfolio.rows.begin(),
                               facts.all_cores_portfolio.rows.end());
    std::erase_if(of_this_source.rows, [&](const Row& row) {
      return row.source_name != spec.source.filename().string();
    });
    const BuiltCandidate built = bench.builds.build_trusted(of_this_source, spec.link);
    if (built.engine_error) return *built.engine_error;
    if (const Artifact* failed = built.failed())
      return Error{ErrorCode::unavailable, "rebuild baseline " + spec.name, failed->reason,
                   "install what it links, then resume again"};
  }
  apply_baseline(bench.judge, facts);
  return {};
}

std::optional<double> roof_ns(const BaselineFacts& facts, const std::string& case_name) {
  const auto found = facts.ceilings.find(case_name);
  if (found == facts.ceilings.end()) return std::nullopt;
  const CeilingFacts& ceiling = found->second;
  double ns = 0;  // each is a bound of its own: the largest binds
  for (const auto& [name, one] : ceiling.ns) ns = std::max(ns, one);
  if (ceiling.ns.empty()) {
    if (facts.roof.bytes_per_ns > 0) ns = ceiling.bytes / facts.roof.bytes_per_ns;
    if (facts.roof.flops_per_ns > 0) ns = std::max(ns, ceiling.flops / facts.roof.flops_per_ns);
  }
  return ns > 0 ? std::optional<double>(ns) : std::nullopt;
}

void apply_baseline(Judge& judge, const BaselineFacts& facts) {
  for (const auto& [case_name, log_ratio] : facts.noise) judge.set_noise(case_name, log_ratio);
  for (const auto& [case_name, ceiling] : facts.ceilings) {
    double floor_ns = least_time_ns(facts.roof, ceiling.bytes, ceiling.flops);
    for (const char* name : {"copy", "device_copy"})  // what the bytes alone cost
      if (const auto copy = ceiling.ns.find(name); copy != ceiling.ns.end())
        floor_ns = std::max(floor_ns, copy->second / kRoofMargin);
    if (floor_ns > 0) judge.set_floor(case_name, floor_ns);
  }
}

Json to_json(const BaselineFacts& facts) {
  Json json{
      {"name", facts.name},
      {"portfolio", to_json(facts.portfolio)},
      {"all_cores_portfolio", to_json(facts.all_cores_portfolio)},
      {"case_ns", facts.case_ns},
      {"ranked_ns", facts.ranked_ns},
      {"noise", facts.noise},
      {"notes", facts.notes},
      {"control_s", facts.control_s},
      {"control_calls", facts.control_calls},
      {"roof",
       {{"bytes_per_ns", facts.roof.bytes_per_ns}, {"flops_per_ns", facts.roof.flops_per_ns}}},
      {"ceilings", Json::object()}};
  for (const auto& [case_name, ceiling] : facts.ceilings)
    json["ceilings"][case_name] = {
        {"ns", ceiling.ns}, {"flops", ceiling.flops}, {"bytes", ceiling.bytes}};
  return json;
}

Result<BaselineFacts> baseline_from_json(const Json& json) {
  try {
    BaselineFacts facts;
    facts.name = json.at("name").get<std::string>();
    ASSIGN_OR_RETURN(facts.portfolio, candidate_from_json(json.at("portfolio")));
    ASSIGN_OR_RETURN(facts.all_cores_portfolio,
                     candidate_from_json(json.at("all_cores_portfolio")));
    json.at("case_ns").get_to(facts.case_ns);
    facts.ranked_ns = json.value("ranked_ns", facts.ranked_ns);
    json.at("noise").get_to(facts.noise);
    json.at("notes").get_to(facts.notes);
    facts.control_s = json.at("control_s").get<double>();
    facts.control_calls = json.value("control_calls", facts.control_calls);
    if (json.contains("roof"))
      facts.roof = {json["roof"].at("bytes_per_ns").get<double>(),
                    json["roof"].at("flops_per_ns").get<double>()};
    for (const auto& [case_name, ceiling] : json.at("ceilings").items())
      facts.ceilings[case_name] = {ceiling.at("ns").get<std::map<std::string, double>>(),
                                   ceiling.at("flops").get<double>(),
                                   ceiling.at("bytes").get<double>()};
    return facts;
  } catch (const Json::exception& trouble) {
    return Error{ErrorCode::corrupt, "read the recorded baseline", trouble.what(),
                 "the archive is damaged: start a new run"};
  }
}

}  // namespace kbeam
