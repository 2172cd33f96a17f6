#include "apps/cli/setting_bench.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/entropy.h"
#include "base/spelling.h"
#include "build/knob_value.h"
#include "build/source_scan.h"

namespace kbeam::cli {
namespace {

Error no_such(const std::string& option, const std::string& name, const std::string& whose,
              const std::vector<std::string>& known) {
  const auto close = closest_word(name, known);
  return {ErrorCode::bad_input, "read " + option + " " + name, whose + " has none of that name",
          close ? "did you mean " + *close + "?"
                : fmt::format("choose among {}", fmt::join(known, ", "))};
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char letter : text)
    if (letter == by)
      parts.emplace_back();
    else
      parts.back() += letter;
  return parts;
}

struct KnobOption {
  Knob* knob = nullptr;
  std::vector<std::string> values;
};

// NAME=VALUE[,VALUE...] of a declared knob.
Result<KnobOption> read_knob_option(const std::string& option, const std::string& text,
                                    std::vector<Knob>& knobs, const std::string& file) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::vector<std::string> names;
  for (const Knob& knob : knobs) names.push_back(knob.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return no_such(option, name, file, names);
  KnobOption read{&knobs[static_cast<std::size_t>(found - names.begin())], {}};
  if (equals != std::string::npos) read.values = split(text.substr(equals + 1), ',');
  const bool good = std::all_of(read.values.begin(), read.values.end(),
                                [](const std::string& value) { return is_knob_value(value); });
  if (read.values.empty() || !good)
    return Error{ErrorCode::bad_input, "read " + option + " " + text,
                 "a knob's value is a number, a name, true or false",
                 "write for instance " + option + " " + name + "=" + read.knob->fallback};
  return read;
}

double geometric_speedup(const std::vector<Measurement>& measurements) {
  double sum = 0;
  for (const Measurement& measurement : measurements) sum += std::log(measurement.summary.speedup);
  return std::exp(sum / static_cast<double>(measurements.size()));
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

Result<std::vector<Case>> timed_or_named_cases(const Problem& problem,
                                               const std::vector<std::string>& names) {
  if (names.empty()) return problem.timed_cases();
  std::vector<Case> cases;
  std::vector<std::string> known;
  for (const Case& the_case : problem.cases)
    if (the_case.pool == Pool::public_pool) known.push_back(the_case.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return no_such("--case", name, "problem " + problem.name, known);
    cases.push_back(*problem.find_case(name));
  }
  return cases;
}

Result<std::unique_ptr<SettingBench>> SettingBench::open(const Options& options,
                                                         RankingEffort effort,
                                                         bool builds_give_way) {
  std::unique_ptr<SettingBench> bench(new SettingBench());
  bench->effort_ = effort;
  bench->file_ = options.get("FILE");
  if (!options.has("--problem"))
    return Error{ErrorCode::bad_input, "tune " + bench->file_, "no problem is named",
                 "say what it solves with --problem; `kbeam problems` lists them. A recorded "
                 "space is tuned with --simulate"};
  ASSIGN_OR_RETURN(bench->tools_, open_bench_tools({.problem = options.get("--problem"),
                                                    .target = target_of_file(bench->file_),
                                                    .grade = options.get("--grade"),
                                                    .seed = random_bits() >> 16,
                                                    .key = std::nullopt,
                                                    .builds_give_way = builds_give_way}));
  ASSIGN_OR_RETURN(bench->cases_,
                   timed_or_named_cases(bench->tools_->problem, options.all("--case")));
  RETURN_IF_ERROR(bench->read_space(options));
  RETURN_IF_ERROR(bench->build_default());
  return bench;
}

Result<void> SettingBench::read_space(const Options& options) {
  ASSIGN_OR_RETURN(source_, read_file(file_));
  SourceKnobs scanned = scan_knobs(source_);
  if (scanned.knobs.empty())
    return Error{ErrorCode::bad_input, "tune " + file_, "it declares no knobs",
                 "declare some with KBEAM_KNOB: docs/candidate.md"};
  for (const std::string& choices : options.all("--choices")) {
    ASSIGN_OR_RETURN(const KnobOption read,
                     read_knob_option("--choices", choices, scanned.knobs, file_));
    read.knob->choices = read.values;
  }
  for (const std::string& fixed : options.all("--knob")) {
    ASSIGN_OR_RETURN(const KnobOption read,
                     read_knob_option("--knob", fixed, scanned.knobs, file_));
    read.knob->choices = {read.values.front()};
    read.knob->fallback = read.values.front();
  }
  space_ = std::make_unique<KnobSpace>(scanned.knobs, scanned.constraints);
  if (!space_->allows(space_->defaults()))
    return Error{ErrorCode::bad_input, "tune " + file_,
                 "its default setting breaks its own KBEAM_REQUIRE",
                 "change the defaults, or fix other knobs with --knob"};
  return {};
}

Candidate SettingBench::candidate_with(const KnobValues& knobs) const {
  Candidate candidate;
  candidate.family = std::filesystem::path(file_).filename().string();
  candidate.origin = "manual";
  candidate.rows.push_back({.source = source_, .source_name = candidate.family, .knobs = knobs});
  candidate.id = candidate_id(candidate);
  return candidate;
}

Result<void> SettingBench::build_default() {
  const Candidate candidate = candidate_with(space_->defaults());
  const BuiltCandidate built = tools_->builds->build_now(candidate);
  if (built.engine_error) return *built.engine_error;
  if (const Artifact* const failed = built.failed())
    return Error{ErrorCode::bad_input, "build " + file_ + " with its default setting",
                 failed->reason + "\n" + failed->log, "mend it: see kbeam check"};
  default_ = tools_->builds->subject_of(candidate, candidate.id);
  return {};
}

void SettingBench::start_build(const KnobValues& knobs) {
  tools_->builds->push(candidate_with(knobs));
}

Result<JudgedSetting> SettingBench::judge_next(double hopeless_below) {
  const BuiltCandidate built = tools_->builds->pop();
  if (built.engine_error) return *built.engine_error;
  JudgedSetting judged;
  judged.knobs = built.candidate.rows.front().knobs;
  judged.build_s = built.artifacts.front().build_s;
  if (const Artifact* const failed = built.failed()) {
    judged.verdict = failed->verdict;
    judged.reason = failed->reason;
    return judged;
  }
  judge(built.candidate, hopeless_below, judged);
  return judged;
}

void SettingBench::judge_again(JudgedSetting& judged) {
  JudgedSetting sitting{.knobs = judged.knobs};
  judge(candidate_with(judged.knobs), 0, sitting);
  judged.judge_s += sitting.judge_s;
  if (sitting.verdict != Verdict::accepted) return;
  for (std::size_t i = 0; i < judged.measurements.size(); ++i) {
    const PairedSamples& more = sitting.measurements[i].samples;
    PairedSamples& samples = judged.measurements[i].samples;
    const auto add = [](const auto& from, auto& to) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(more.candidate_ns, samples.candidate_ns);
    add(more.reference_ns, samples.reference_ns);
    add(more.candidate_first, samples.candidate_first);
    add(more.process, samples.process);
  }
}

void SettingBench::judge(const Candidate& candidate, double hopeless_below, JudgedSetting& judged) {
  const auto began = std::chrono::steady_clock::now();
  CompareRequest request{.candidate = tools_->builds->subject_of(candidate, candidate.id),
                         .reference = default_};
  request.timed_cases = cases_;
  // One base input for all pairs of a setting: what could be gained by remembering it is lost again
  // in the confirmation.
  request.rule = {.name = "tune",
                  .pairs_per_process = effort_.pairs_per_process,
                  .processes = effort_.processes,
                  .futile_speedup = hopeless_below};
  request.stage = Stage::screen;
  const Evaluation evaluation = tools_->target.judge->compare(request);
  judged.judge_s = seconds_since(began);
  judged.verdict = evaluation.verdict;
  judged.reason = evaluation.reason;
  judged.measurements = evaluation.measurements;
  if (judged.verdict != Verdict::accepted) return;
  judged.speedup = geometric_speedup(judged.measurements);
  judged.hopeless = std::any_of(
      judged.measurements.begin(), judged.measurements.end(),
      [](const Measurement& measurement) { return measurement.stop_reason.starts_with("futile"); });
}

Evaluation SettingBench::confirm(const KnobValues& knobs, int claims) {
  const Candidate candidate = candidate_with(knobs);
  CompareRequest request{.candidate = tools_->builds->subject_of(candidate, candidate.id),
                         .reference = default_};
  // Every case of the problem is checked, those that are timed included: by each timed output.
  for (const Case& the_case : tools_->problem.cases)
    if (std::none_of(cases_.begin(), cases_.end(),
                     [&](const Case& timed) { return timed.name == the_case.name; }))
      request.check_cases.push_back(the_case);
  request.timed_cases = cases_;
  request.rule = tools_->target.judge->rules().confirm;
  request.rule.claims = claims * static_cast<int>(cases_.size());
  return tools_->target.judge->compare(request);
}

}  // namespace kbeam::cli
