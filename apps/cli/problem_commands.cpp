// kbeam problems, new-problem.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "model/json_forms.h"
#include "problem/problem_file.h"

namespace kbeam::cli {

int problems_command(const Options& options) {
  const Result<Home> home = find_home();
  if (!home.ok()) return report_error(home.error(), options);
  Json list = Json::array();
  for (const std::filesystem::path& folder : list_problems(home->problems)) {
    const Result<LoadedProblem> loaded = load_problem(folder);
    Json entry{{"name", folder.filename().string()}, {"folder", folder.string()}};
    if (!loaded.ok() || !loaded->mistakes.empty()) {
      entry["mistakes"] = loaded.ok() ? loaded->mistakes.size() : 1;
    } else {
      entry["title"] = loaded->problem.title;
      entry["cases"] = loaded->problem.cases.size();
      entry["timed_cases"] = loaded->problem.timed_cases().size();
    }
    list.push_back(std::move(entry));
  }
  if (options.json()) {
    fmt::print("{}\n", json_text(list));
    return kDone;
  }
  for (const Json& entry : list) {
    if (entry.contains("mistakes"))
      fmt::print("{:<16} cannot be used: see `kbeam run {}`\n", entry["name"].get<std::string>(),
                 entry["folder"].get<std::string>());
    else
      fmt::print("{:<16} {} ({} cases, {} timed)\n", entry["name"].get<std::string>(),
                 entry["title"].get<std::string>(), entry["cases"].get<int>(),
                 entry["timed_cases"].get<int>());
  }
  return kDone;
}

int new_problem_command(const Options& options) {
  const Result<Home> home = find_home();
  if (!home.ok()) return report_error(home.error(), options);
  const std::filesystem::path target = std::filesystem::absolute(options.get("NAME"));
  if (const Result<void> made = make_problem_from_template(home->problem_template, target);
      !made.ok())
    return report_error(made.error(), options);
  if (options.json())
    fmt::print("{}\n", json_text(Json{{"folder", target.string()}}));
  else
    fmt::print("made {}: read its README.md, then try\n  kbeam run {} --budget 30s\n",
               target.string(),
               options.get("NAME").find('/') == std::string::npos ? "./" + options.get("NAME")
                                                                  : options.get("NAME"));
  return kDone;
}

}  // namespace kbeam::cli
