#include "apps/cli/space_recorder.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/foreign_json.h"
#include "base/gzip.h"
#include "base/hash.h"
#include "loop/research_loop.h"
#include "model/json_forms.h"
#include "search/recorded_space.h"

namespace kbeam::cli {
namespace {

// What has to be the same for two recordings to be one.
Json header_of(const SettingBench& bench, const Problem& problem) {
  Json header = {{"problem", problem.name},
                 {"source_hash", sha256_hex(bench.source())},
                 {"cases", Json::array()},
                 {"knobs", Json::object()}};
  for (const Case& the_case : bench.cases()) header["cases"].push_back(the_case.name);
  for (const Knob& knob : bench.space().knobs())
    header["knobs"][knob.name] = {{"default", knob.fallback}, {"choices", knob.choices}};
  return header;
}

// Nanoseconds without a fraction: no clock here tells more, and the file is a third as long.
Json whole(const std::vector<std::vector<double>>& cases) {
  Json lists = Json::array();
  for (const std::vector<double>& values : cases) {
    Json& list = lists.emplace_back(Json::array());
    for (const double value : values)
      list.push_back(static_cast<std::int64_t>(std::llround(value)));
  }
  return lists;
}

// Geometric mean over the cases of the least times: whatever else runs only ever adds to a time, so
// that the least of a handful is the code's own. A tuning ranks by medians of pairs, as every
// verdict does; a recording is kept for good and has the time to take sittings again.
double least_ns(const std::vector<std::vector<double>>& cases) {
  double sum = 0;
  for (const std::vector<double>& values : cases)
    sum += std::log(*std::min_element(values.begin(), values.end()));
  return std::exp(sum / static_cast<double>(cases.size()));
}

}  // namespace

Result<SpaceRecorder> SpaceRecorder::open(const std::filesystem::path& file,
                                          const SettingBench& bench) {
  SpaceRecorder recorder;
  recorder.file_ = file;
  recorder.partial_ = file.string() + ".partial";
  const std::string header = json_text(header_of(bench, bench.tools().problem));
  if (!std::filesystem::exists(recorder.partial_)) {
    RETURN_IF_ERROR(write_file(recorder.partial_, header + "\n"));
    return recorder;
  }
  ASSIGN_OR_RETURN(const std::string text, read_file(recorder.partial_));
  const std::size_t end = text.find('\n');
  if (text.substr(0, end) != header)
    return Error{ErrorCode::bad_input, "go on with " + recorder.partial_.string(),
                 "it is a recording of another file, problem, case or space",
                 "give another file with --record, or move this one away"};
  RETURN_IF_ERROR(recorder.read_lines(text.substr(end + 1)));
  return recorder;
}

Result<void> SpaceRecorder::read_lines(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_foreign_json(line);
    if (json.is_discarded()) continue;  // the line that a kill cut short
    try {
      Line read;
      read.judged.knobs = json.at("knobs").get<KnobValues>();
      read.judged.verdict = parse_verdict(json.at("verdict").get<std::string>()).value();
      read.judged.reason = json.at("reason").get<std::string>();
      read.judged.speedup = json.at("speedup").get<double>();
      read.judged.hopeless = json.at("hopeless").get<bool>();
      read.judged.build_s = json.at("build_s").get<double>();
      read.judged.judge_s = json.at("judge_s").get<double>();
      read.candidate_ns = json.at("candidate_ns").get<std::vector<std::vector<double>>>();
      read.reference_ns = json.at("reference_ns").get<std::vector<std::vector<double>>>();
      index_[read.judged.knobs] = settings_.size();
      settings_.push_back(std::move(read));
    } catch (const std::exception& trouble) {
      return Error{ErrorCode::corrupt, "go on with " + partial_.string(),
                   std::string("a line of it cannot be read: ") + trouble.what(),
                   "remove that line, or begin anew with another file"};
    }
  }
  return {};
}

const JudgedSetting* SpaceRecorder::find(const KnobValues& knobs) const {
  const auto found = index_.find(knobs);
  return found == index_.end() ? nullptr : &settings_[found->second].judged;
}

Result<void> SpaceRecorder::add(const JudgedSetting& judged) {
  if (judged.verdict == Verdict::engine_failed || index_.contains(judged.knobs)) return {};
  Line line{judged, {}, {}};
  line.judged.measurements.clear();
  for (const Measurement& measurement : judged.measurements) {
    line.candidate_ns.push_back(measurement.samples.candidate_ns);
    line.reference_ns.push_back(measurement.samples.reference_ns);
  }
  if (judged.verdict == Verdict::accepted)
    line.judged.speedup = least_ns(line.reference_ns) / least_ns(line.candidate_ns);
  const Json json = {{"knobs", judged.knobs},
                     {"verdict", to_string(judged.verdict)},
                     {"reason", judged.reason.substr(0, 200)},
                     {"speedup", line.judged.speedup},
                     {"hopeless", judged.hopeless},
                     {"build_s", judged.build_s},
                     {"judge_s", judged.judge_s},
                     {"candidate_ns", whole(line.candidate_ns)},
                     {"reference_ns", whole(line.reference_ns)}};
  std::ofstream stream(partial_, std::ios::app);
  stream << json_text(json) << "\n" << std::flush;
  if (!stream)
    return Error{ErrorCode::io, "write " + partial_.string(), "the disk took no more of it",
                 "free space and go on with the same command"};
  index_[judged.knobs] = settings_.size();
  settings_.push_back(std::move(line));
  return {};
}

Result<void> SpaceRecorder::write_space(const SettingBench& bench, bool complete) const {
  const BenchTools& tools = bench.tools();
  ASSIGN_OR_RETURN(const Environment machine,
                   probe_environment(tools.target.compiler->version(), {}));
  SpaceRecord record;
  Json cases = Json::array();
  for (const Case& the_case : bench.cases()) cases.push_back(the_case.name);
  record.kernel = tools.problem.name + "/" + bench.candidate_with({}).family;
  record.device = machine.cpu;
  record.knobs = bench.space().knobs();
  std::map<KnobValues, Json> details;
  for (const Line& line : settings_) {
    RecordedSetting setting{line.judged.knobs, std::nullopt, {}};
    const bool accepted = line.judged.verdict == Verdict::accepted;
    if (accepted)
      setting.time_ms = 1e-6 * least_ns(line.candidate_ns);
    else
      setting.failure = to_string(line.judged.verdict);
    Json detail = {{"compile_time", std::round(1e3 * line.judged.build_s)},
                   {"benchmark_time", std::round(1e3 * line.judged.judge_s)}};
    if (accepted) {
      detail["candidate_ns"] = whole(line.candidate_ns);
      detail["reference_ns"] = whole(line.reference_ns);
    } else {
      detail["verdict"] = to_string(line.judged.verdict);
    }
    details[setting.knobs] = std::move(detail);
    record.settings.push_back(std::move(setting));
  }
  const Json facts = {
      {"problem", tools.problem.name},
      {"cases", cases},
      {"source_hash", sha256_hex(bench.source())},
      {"compiler", machine.compiler},
      {"kernel", machine.kernel},
      {"complete", complete},
      {"times", "the least of a setting's calls; of several cases the geometric mean"},
      {"ended", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))}};
  const std::string text = space_text(record, details, facts);
  RETURN_IF_ERROR(write_file(file_, file_.extension() == ".gz" ? gzip(text) : text));
  std::error_code ignored;
  if (complete) std::filesystem::remove(partial_, ignored);
  return {};
}

}  // namespace kbeam::cli
