#include "apps/cli/runs.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/entropy.h"
#include "base/spelling.h"

namespace kbeam::cli {
namespace fs = std::filesystem;

fs::path runs_folder(const Options& options) {
  const std::string named = options.get("--dir");
  return fs::absolute(named.empty() ? "runs" : named);
}

Result<fs::path> find_run(const Options& options) {
  const std::string named = options.get("RUN");
  if (named.find('/') != std::string::npos && fs::exists(fs::path(named) / "archive.sqlite"))
    return fs::absolute(named);
  const fs::path folder = runs_folder(options);
  std::vector<std::string> ids;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(folder, trouble))
    if (fs::exists(entry.path() / "archive.sqlite"))
      ids.push_back(entry.path().filename().string());
  std::sort(ids.begin(), ids.end());  // ids begin with their date
  if (ids.empty())
    return Error{ErrorCode::not_found, "find a run in " + folder.string(), "there is none",
                 "start one with `kbeam run batched_qr`, or name the folder with --dir"};
  if (named.empty()) return folder / ids.back();
  std::vector<std::string> matches;
  for (const std::string& id : ids)
    if (id == named) return folder / id;
  for (const std::string& id : ids)
    if (id.starts_with(named)) matches.push_back(id);
  if (matches.size() == 1) return folder / matches.front();
  const auto close = closest_word(named, ids);
  return Error{ErrorCode::not_found, "find run '" + named + "' in " + folder.string(),
               matches.empty() ? "there is no such run" : "several runs begin like that",
               close ? "did you mean " + *close + "?" : "the latest is " + ids.back()};
}

std::string make_run_id() {
  return fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), random_letters(4));
}

OptionSpec run_argument() {
  return {"RUN", "RUN", "a run's id, its beginning, or its folder; the latest when left out", ""};
}

OptionSpec dir_option() {
  return {"--dir", "FOLDER", "where runs live", "runs"};
}

}  // namespace kbeam::cli
