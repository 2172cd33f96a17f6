#include "report/publish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/files.h"
#include "model/json_forms.h"
#include "report/facts.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

using Files = std::map<std::string, std::string>;  // path in the folder -> content

std::string pretty(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A name that stays inside the folder, whatever a proposer called its file.
std::string safe_name(const std::string& named) {
  std::string name;
  for (const char letter : named) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' ||
                       letter == '-' || letter == '.';
    name += plain ? letter : '_';
  }
  return name.empty() || name.front() == '.' ? "candidate.cpp" : name;
}

void add_winner(Files& files, const Candidate& winner, const Problem& problem) {
  Json form = to_json(winner);
  std::map<std::string, std::string> name_of_source;
  for (Json& row : form["rows"]) {
    const std::string source = row["source"].get<std::string>();
    std::string& name = name_of_source[source];
    if (name.empty()) {
      const std::string wanted = safe_name(row["source_name"].get<std::string>());
      name = wanted;
      for (int i = 2; files.contains("winner/" + name); ++i) name = fmt::format("{}_{}", i, wanted);
      files["winner/" + name] = source;
    }
    row["source"] = name;
  }
  form["problem"] = problem.name;
  form["problem_hash"] = problem.content_hash;
  form["regime_axis"] = problem.regime_axis;
  files["winner/candidate.json"] = pretty(form);
}

std::string sample_lines(const std::vector<Evaluation>& evaluations) {
  std::string lines;
  for (const Evaluation& evaluation : evaluations) {
    if (evaluation.stage != Stage::promote) continue;
    for (const Measurement& measurement : evaluation.measurements) {
      Json line{{"evaluation_id", evaluation.id}, {"candidate_id", evaluation.candidate_id}};
      line.update(to_json(measurement));
      lines += json_text(line) + "\n";
    }
  }
  return lines;
}

std::size_t total_bytes(const Files& files) {
  std::size_t total = 0;
  for (const auto& [name, content] : files) total += content.size();
  return total;
}

Files gather_files(const ReportInput& input, std::size_t most_bytes) {
  Files files;
  files["summary.json"] = pretty(input.summary);
  files["campaign.json"] =
      pretty({{"config", to_json(input.config)}, {"environment", to_json(input.environment)}});
  const ReportFacts facts = gather_facts(input);
  if (facts.winner != nullptr) add_winner(files, *facts.winner, input.problem);
  files["samples.jsonl"] = sample_lines(input.evaluations);
  files["report.html"] = render_report_html(input);
  files["attempts_log.md"] = render_attempts_log(input);
  for (int most = static_cast<int>(input.evaluations.size());
       total_bytes(files) > most_bytes && most > 0;) {
    most /= 2;
    files["attempts_log.md"] = render_attempts_log(input, most);
  }
  return files;
}

Result<void> write_files(const Files& files, const fs::path& folder) {
  for (const auto& [name, content] : files) {
    std::error_code trouble;
    fs::create_directories((folder / name).parent_path(), trouble);
    RETURN_IF_ERROR(write_file(folder / name, content));
  }
  return {};
}

// What is published is read on other machines: where things lay on this one says nothing there.
ReportInput without_local_paths(ReportInput input) {
  input.config.problem_folder = input.config.problem_name;
  for (const char* key : {"archive", "report_html"})
    if (input.summary.contains(key) && input.summary[key].is_string())
      input.summary[key] = fs::path(input.summary[key].get<std::string>()).filename().string();
  std::vector<std::string>& flags = input.environment.compile_flags;
  for (std::size_t i = 0; i + 1 < flags.size(); ++i)
    if (flags[i] == "-I") flags[i + 1] = fs::path(flags[i + 1]).filename().string();
  return input;
}

}  // namespace

Result<void> publish_run(const ReportInput& input, const fs::path& campaigns,
                         std::size_t most_bytes) {
  const fs::path target = campaigns / safe_name(input.config.run_id);
  const std::string what = "publish run " + input.config.run_id + " to " + target.string();
  std::error_code trouble;
  if (fs::exists(target, trouble))
    return Error{
        ErrorCode::bad_input, what, "that folder is already there",
        "a published campaign is not changed: remove the folder first if it should be replaced"};
  const Files files = gather_files(without_local_paths(input), most_bytes);
  ASSIGN_OR_RETURN(const fs::path folder, make_temporary_folder(campaigns, ".publishing-"));
  const Result<void> written = write_files(files, folder);
  if (written.ok()) fs::rename(folder, target, trouble);
  if (written.ok() && !trouble) return {};
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  if (!written.ok()) return written.error();
  return Error{ErrorCode::io, what, trouble.message(), "check free space and permissions"};
}

}  // namespace kbeam
