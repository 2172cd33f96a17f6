// kbeam study: what the shipped decision makes of recorded A/A traces: how often it calls identical
// kernels different, and which gain it would have found. Measures nothing itself.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/cuda_plans.h"
#include "base/files.h"
#include "measure/aa_study.h"
#include "measure/pair_trace.h"
#include "measure/statistics.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

// Of a thousand comparisons of identical kernels so many may be called faster.
constexpr double kMostFalse = 0.004;
constexpr std::array kGains{0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3};

struct StudiedTrace {
  PairTrace trace;
  AaStudy study;
  std::vector<PowerPoint> power;  // only of traces that `kbeam trace` recorded
};

double half_width(const PairedSummary& summary) {
  return std::log(summary.high / summary.low) / 2;
}

Json counts(const AaStudy& study) {
  return {{"comparisons", study.comparisons.size()},
          {"faster", study.count(Comparison::faster)},
          {"slower", study.count(Comparison::slower)},
          {"same", study.count(Comparison::same)},
          {"ambiguous", study.count(Comparison::ambiguous)}};
}

Json to_json(const StudiedTrace& studied) {
  const PairedSamples& samples = studied.trace.samples;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.candidate_ns.size(); ++i)
    ratios.push_back(std::log(samples.reference_ns[i] / samples.candidate_ns[i]));
  std::ranges::sort(ratios);
  std::vector<double> widths;
  std::vector<double> pairs;
  for (const PairedSummary& summary : studied.study.comparisons) {
    widths.push_back(half_width(summary));
    pairs.push_back(summary.pairs);
  }
  Json json{{"condition", studied.trace.condition},
            {"problem", studied.trace.problem},
            {"case", studied.trace.case_name},
            {"facts", studied.trace.facts},
            {"pairs", samples.candidate_ns.size()},
            {"processes", samples.process.empty() ? 0 : samples.process.back() + 1},
            {"median_us", median(samples.candidate_ns) / 1e3},
            {"spread", ratios.at(ratios.size() * 3 / 4) - ratios.at(ratios.size() / 4)},
            {"half_width", median(widths)},
            {"noise_floor", median(studied.study.noise_floors)},
            {"pairs_a_comparison", median(pairs)},
            {"power", Json::array()}};
  json.update(counts(studied.study));
  for (const PowerPoint& point : studied.power)
    json["power"].push_back({{"gain", point.gain},
                             {"pairs", point.pairs == 0 ? Json() : Json(point.pairs)},
                             {"found_by_rule", point.found_by_rule}});
  return json;
}

Result<AaRequest> fixed_request(const Options& options) {
  AaRequest request;
  request.timer_resolution_ns = 0;
  ASSIGN_OR_RETURN(const int pairs, parse_count(options.get("--pairs"), "--pairs"));
  ASSIGN_OR_RETURN(const int processes, parse_count(options.get("--processes"), "--processes"));
  ASSIGN_OR_RETURN(const int control, parse_count(options.get("--control"), "--control"));
  request.rule = {.name = "fixed", .pairs_per_process = pairs, .processes = processes};
  request.control = {.name = "a/a", .pairs_per_process = control, .processes = 1};
  request.comparisons_per_control = 1;
  return request;
}

// A result that collect kept: an evaluation of a candidate against itself.
Result<std::vector<StudiedTrace>> study_result(const Options& options) {
  ASSIGN_OR_RETURN(const AaRequest request, fixed_request(options));
  ASSIGN_OR_RETURN(const std::string text, read_file(options.get("FILE")));
  ASSIGN_OR_RETURN(const Json json, parse_json(text, options.get("FILE")));
  const Json& holder = json.contains("result") ? json["result"] : json;
  if (!holder.contains("evaluation"))
    return Error{ErrorCode::bad_input, "read " + options.get("FILE"), "it holds no evaluation",
                 "give a result that `kbeam collect` kept, or the folder of `kbeam trace`"};
  ASSIGN_OR_RETURN(Evaluation evaluation, evaluation_from_json(holder["evaluation"]));
  std::vector<StudiedTrace> list;
  for (Measurement& measurement : evaluation.measurements) {
    StudiedTrace studied{
        .trace = {.case_name = measurement.case_name, .samples = std::move(measurement.samples)}};
    studied.study = study_identical_kernels(studied.trace.samples, request);
    list.push_back(std::move(studied));
  }
  return list;
}

Result<std::vector<StudiedTrace>> study_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".trace") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<StudiedTrace> list;
  for (const std::filesystem::path& file : files) {
    ASSIGN_OR_RETURN(const std::string bytes, read_file(file));
    ASSIGN_OR_RETURN(PairTrace trace, decode_trace(bytes, file.string()));
    StudiedTrace studied{.trace = std::move(trace)};
    studied.study = study_identical_kernels(studied.trace.samples, {});
    studied.power = study_power(studied.trace.samples, kGains);
    list.push_back(std::move(studied));
  }
  return list;
}

Result<std::vector<StudiedTrace>> study(const Options& options) {
  const std::filesystem::path named = options.get("FILE");
  ASSIGN_OR_RETURN(std::vector<StudiedTrace> list, std::filesystem::is_directory(named)
                                                       ? study_folder(named)
                                                       : study_result(options));
  const auto empty = std::ranges::find_if(
      list, [](const StudiedTrace& studied) { return studied.study.comparisons.empty(); });
  if (list.empty() || empty != list.end())
    return Error{ErrorCode::bad_input, "study " + named.string(),
                 list.empty() ? "it holds no trace"
                              : fmt::format("the {} pairs of case {} hold no whole comparison",
                                            empty->trace.samples.candidate_ns.size(),
                                            empty->trace.case_name),
                 "record more: kbeam trace on a CPU, kbeam bundle --file X.cu --reference X.cu "
                 "--pairs 12000 on a GPU"};
  return list;
}

struct Total {
  AaStudy all;
  bool too_many_faster() const {
    return static_cast<double>(all.count(Comparison::faster)) >
           kMostFalse * static_cast<double>(all.comparisons.size());
  }
};

std::map<std::string, Total> totals_of(const std::vector<StudiedTrace>& list) {
  std::map<std::string, Total> totals;  // by condition
  for (const StudiedTrace& studied : list) {
    auto& comparisons = totals[studied.trace.condition].all.comparisons;
    comparisons.insert(comparisons.end(), studied.study.comparisons.begin(),
                       studied.study.comparisons.end());
  }
  return totals;
}

Json simulated() {
  const SimulatedPower request;
  return {{"gain", request.gain},
          {"spread", request.pair_spread},
          {"most_pairs", request.most_pairs},
          {"trials", request.trials},
          {"found", simulate_power(request)}};
}

void print_list(const std::vector<StudiedTrace>& list) {
  std::vector<TableLine> lines{{"condition", "problem", "case", "pairs", "spread", "comparisons",
                                "faster", "slower", "same", "ambiguous", "half-width",
                                "noise floor"}};
  for (const StudiedTrace& studied : list) {
    const Json row = to_json(studied);
    const auto number = [&row](const char* key) { return std::to_string(row[key].get<int>()); };
    const auto percent = [&row](const char* key) {
      return fmt::format("{:.2f} %", 100 * row[key].get<double>());
    };
    lines.push_back({studied.trace.condition, studied.trace.problem, studied.trace.case_name,
                     number("pairs"), percent("spread"), number("comparisons"), number("faster"),
                     number("slower"), number("same"), number("ambiguous"), percent("half_width"),
                     percent("noise_floor")});
  }
  print_table(lines);
}

}  // namespace

int study_command(const Options& options) {
  const Result<std::vector<StudiedTrace>> list = study(options);
  if (!list.ok()) return report_error(list.error(), options);
  const std::map<std::string, Total> totals = totals_of(*list);
  const bool fooled =
      std::ranges::any_of(totals, [](const auto& entry) { return entry.second.too_many_faster(); });
  if (options.json()) {
    Json json{{"traces", Json::array()}, {"totals", Json::object()}, {"simulated", simulated()}};
    for (const StudiedTrace& studied : *list) json["traces"].push_back(to_json(studied));
    for (const auto& [condition, total] : totals) json["totals"][condition] = counts(total.all);
    fmt::print("{}\n", json_text(json));
    return fooled ? kNo : kDone;
  }
  print_list(*list);
  for (const auto& [condition, total] : totals)
    fmt::print("{}: {} of {} comparisons of identical kernels called faster, {} slower\n",
               condition.empty() ? "all" : condition, total.all.count(Comparison::faster),
               total.all.comparisons.size(), total.all.count(Comparison::slower));
  const Json power = simulated();
  fmt::print(
      "on a simulated clock with a pair spread of 1 %, a gain of 2 % is found within {} pairs in "
      "{:.1f} % "
      "of {} trials\n",
      power["most_pairs"].get<int>(), 100 * power["found"].get<double>(),
      power["trials"].get<int>());
  return fooled ? kNo : kDone;
}

}  // namespace kbeam::cli
