// kbeam export: a candidate as a folder that builds by itself, or a run as a data set.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "archive/archive.h"
#include "base/files.h"
#include "base/spelling.h"
#include "loop/summary.h"
#include "model/json_forms.h"
#include "report/export.h"

namespace kbeam::cli {
namespace {

struct LoadedRun {
  Home home;
  ReportInput input;
};

Result<LoadedRun> load_run(const Options& options) {
  LoadedRun run;
  ASSIGN_OR_RETURN(run.home, find_home());
  ASSIGN_OR_RETURN(const std::filesystem::path folder, find_run(options));
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(folder / "archive.sqlite"));
  ASSIGN_OR_RETURN(const Problem problem, open_problem(archive->config().problem_folder, run.home,
                                                       archive->config().target));
  ASSIGN_OR_RETURN(run.input, gather_report(*archive, problem));
  return run;
}

// "winner", an id, or the beginning of one.
Result<Candidate> find_candidate(const ReportInput& run, const std::string& named) {
  const std::string what = "find candidate '" + named + "' in run " + run.config.run_id;
  std::string wanted = named;
  if (named == "winner") {
    const Json winner = run.summary.is_object() ? run.summary.value("winner", Json()) : Json();
    if (!winner.is_object())
      return Error{ErrorCode::not_found, what, "the run has no winner",
                   "name a champion: `kbeam status` lists them"};
    wanted = winner.at("candidate_id").get<std::string>();
  }
  std::vector<const Candidate*> matches;
  std::vector<std::string> ids;
  for (const Candidate& candidate : run.candidates) {
    if (candidate.id == wanted) return candidate;
    if (candidate.id.starts_with(wanted)) matches.push_back(&candidate);
    ids.push_back(candidate.id);
  }
  if (matches.size() == 1) return *matches.front();
  const auto close = closest_word(wanted, ids);
  return Error{
      ErrorCode::not_found, what,
      matches.empty() ? "there is no such candidate" : "several candidates begin like that",
      close ? "did you mean " + *close + "?" : "`kbeam status` lists the champions"};
}

Result<Json> export_dataset(const Options& options) {
  if (options.has("--as"))
    return Error{ErrorCode::bad_input, "export a data set", "--as is for candidates",
                 "leave it out: a data set is JSON lines"};
  ASSIGN_OR_RETURN(const LoadedRun run, load_run(options));
  const std::string named = options.get("--to");
  const std::filesystem::path file = named.empty() ? run.input.config.run_id + ".jsonl" : named;
  RETURN_IF_ERROR(write_file(file, render_dataset(run.input)));
  return Json{{"run_id", run.input.config.run_id},
              {"dataset", file.string()},
              {"attempts", run.input.evaluations.size()}};
}

Result<Json> export_one(const Options& options) {
  const std::string as = options.get("--as");
  if (as != "library" && as != "source")
    return Error{ErrorCode::bad_input, "export " + options.get("WHAT"), "--as is '" + as + "'",
                 "use --as library or --as source"};
  ASSIGN_OR_RETURN(const LoadedRun run, load_run(options));
  ASSIGN_OR_RETURN(const Candidate candidate, find_candidate(run.input, options.get("WHAT")));
  const std::string named = options.get("--to");
  const std::filesystem::path folder =
      named.empty() ? run.input.problem.name + "_" + candidate.id : named;
  RETURN_IF_ERROR(export_candidate({.run = run.input,
                                    .candidate = candidate,
                                    .as = as == "library" ? ExportAs::library : ExportAs::source,
                                    .contract_include = run.home.contract_include},
                                   folder));
  return Json{{"run_id", run.input.config.run_id},
              {"candidate_id", candidate.id},
              {"as", as},
              {"folder", folder.string()}};
}

}  // namespace

int export_command(const Options& options) {
  const bool dataset = options.get("WHAT") == "dataset";
  const Result<Json> done = dataset ? export_dataset(options) : export_one(options);
  if (!done.ok()) return report_error(done.error(), options);
  if (options.json())
    fmt::print("{}\n", json_text(*done));
  else if (dataset)
    fmt::print("wrote {} attempts to {}\n", (*done)["attempts"].get<std::size_t>(),
               (*done)["dataset"].get<std::string>());
  else
    fmt::print("exported {} to {}; build it there with: cmake -B build && cmake --build build\n",
               (*done)["candidate_id"].get<std::string>(), (*done)["folder"].get<std::string>());
  return kDone;
}

}  // namespace kbeam::cli
