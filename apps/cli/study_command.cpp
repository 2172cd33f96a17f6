// kbeam study: how often the shipped decision calls identical kernels different, from a recorded
// A/A trace. Measures nothing itself.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "base/files.h"
#include "measure/aa_study.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

Result<Json> study_measurement(const Measurement& measurement, const AaRequest& request) {
  const AaStudy study = study_identical_kernels(measurement.samples, request);
  if (study.comparisons.empty())
    return Error{ErrorCode::bad_input, "study case " + measurement.case_name,
                 fmt::format("its {} pairs hold no comparison of {} x ({} control + {}) pairs",
                             measurement.samples.candidate_ns.size(), request.processes,
                             request.control_pairs, request.pairs),
                 "record more: kbeam bundle --file X.cu --reference X.cu --pairs 12000"};
  double widest = 0;
  double largest_floor = 0;
  for (std::size_t i = 0; i < study.comparisons.size(); ++i) {
    const PairedSummary& summary = study.comparisons[i];
    widest = std::max(widest, (summary.high - summary.low) / 2);
    largest_floor = std::max(largest_floor, study.noise_floors[i]);
  }
  return Json{{"case", measurement.case_name},
              {"pairs", measurement.samples.candidate_ns.size()},
              {"comparisons", study.comparisons.size()},
              {"faster", study.count(Comparison::faster)},
              {"slower", study.count(Comparison::slower)},
              {"same", study.count(Comparison::same)},
              {"ambiguous", study.count(Comparison::ambiguous)},
              {"widest_half_width", widest},
              {"largest_noise_floor", largest_floor}};
}

Result<Json> study_file(const Options& options) {
  AaRequest request;
  ASSIGN_OR_RETURN(const std::uint64_t pairs, parse_number(options.get("--pairs"), "--pairs"));
  ASSIGN_OR_RETURN(const std::uint64_t processes,
                   parse_number(options.get("--processes"), "--processes"));
  ASSIGN_OR_RETURN(const std::uint64_t control,
                   parse_number(options.get("--control"), "--control"));
  request.control_pairs = static_cast<int>(control);
  request.pairs = static_cast<int>(pairs);
  request.processes = static_cast<int>(processes);
  ASSIGN_OR_RETURN(const std::string text, read_file(options.get("FILE")));
  ASSIGN_OR_RETURN(const Json json, parse_json(text, options.get("FILE")));
  // A collected result holds the evaluation below "result".
  const Json& holder = json.contains("result") ? json["result"] : json;
  if (!holder.contains("evaluation"))
    return Error{ErrorCode::bad_input, "read " + options.get("FILE"), "it holds no evaluation",
                 "give a result that `kbeam collect` kept"};
  ASSIGN_OR_RETURN(const Evaluation evaluation, evaluation_from_json(holder["evaluation"]));
  Json rows = Json::array();
  for (const Measurement& measurement : evaluation.measurements) {
    ASSIGN_OR_RETURN(Json row, study_measurement(measurement, request));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int study_command(const Options& options) {
  const Result<Json> rows = study_file(options);
  if (!rows.ok()) return report_error(rows.error(), options);
  if (options.json()) {
    fmt::print("{}\n", json_text(*rows));
    return kDone;
  }
  fmt::print("{:<16} {:>8} {:>12} {:>8} {:>8} {:>8} {:>10} {:>12} {:>12}\n", "case", "pairs",
             "comparisons", "faster", "slower", "same", "ambiguous", "half-width", "noise floor");
  for (const Json& row : *rows)
    fmt::print("{:<16} {:>8} {:>12} {:>8} {:>8} {:>8} {:>10} {:>10.2f} % {:>10.2f} %\n",
               row["case"].get<std::string>(), row["pairs"].get<int>(),
               row["comparisons"].get<int>(), row["faster"].get<int>(), row["slower"].get<int>(),
               row["same"].get<int>(), row["ambiguous"].get<int>(),
               100 * row["widest_half_width"].get<double>(),
               100 * row["largest_noise_floor"].get<double>());
  return kDone;
}

}  // namespace kbeam::cli
