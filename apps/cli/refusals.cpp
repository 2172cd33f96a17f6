#include "apps/cli/refusals.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace kbeam::cli {

namespace fs = std::filesystem;

Error refused_build(const std::string& file, Verdict verdict, const std::string& reason,
                    const std::string& log) {
  const bool by_compiler = verdict == Verdict::build_failed && !log.empty();
  // The compiler's first complaint is the reason, and stands in its log again.
  const std::string why = by_compiler || log.find(reason) != std::string::npos
                              ? log
                              : reason + (log.empty() ? "" : "\n" + log);
  return {ErrorCode::bad_input, "build " + file, fmt::format("{}: {}", to_string(verdict), why),
          by_compiler ? "mend the file where the compiler points"
                      : "docs/candidate.md says what a candidate may hold"};
}

Result<fs::path> find_device_description(const Home& home, const std::string& name) {
  const fs::path file = home.devices / (name + ".json");
  std::error_code ignored;
  if (fs::exists(file, ignored)) return file;
  std::vector<std::string> known;
  for (const auto& entry : fs::directory_iterator(home.devices, ignored))
    if (entry.path().extension() == ".json") known.push_back(entry.path().stem().string());
  std::ranges::sort(known);
  return Error{ErrorCode::not_found, "plan for --gpu " + name, "there is no description of it",
               fmt::format("choose among {}, or describe the device in {} as they are",
                           fmt::join(known, ", "), home.devices.string())};
}

}  // namespace kbeam::cli
