// kbeam gc: keeps runs and builds within a budget of disk space.
#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/runs.h"
#include "loop/disk_budget.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

Result<std::int64_t> parse_size(const std::string& text) {
  double number = 0;
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit(rest, text.data() + text.size());
  double scale = 0;
  const std::pair<const char*, double> units[] = {{"", 1},     {"B", 1},    {"KB", 1e3},
                                                  {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  for (const auto& [name, bytes] : units)
    if (unit == name) scale = bytes;
  if (trouble != std::errc() || scale == 0 || !(number >= 0 && number * scale <= 1e18))
    return Error{ErrorCode::bad_input, "read --keep", "'" + text + "' is no size",
                 "write for instance 20GB or 500MB"};
  return static_cast<std::int64_t>(number * scale);
}

std::string size_text(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number >= 1e9) return fmt::format("{:.2f} GB", number / 1e9);
  return number >= 1e6 ? fmt::format("{:.1f} MB", number / 1e6)
                       : fmt::format("{:.1f} KB", number / 1e3);
}

Result<DiskBudget> read_budget(const Options& options) {
  DiskBudget budget;
  budget.runs = runs_folder(options);
  budget.cache = cache_folder();
  budget.dry_run = options.has("--dry-run");
  ASSIGN_OR_RETURN(budget.keep_bytes, parse_size(options.get("--keep")));
  for (const std::string& run : options.all("RUN")) {
    Options one = options;
    one.values["RUN"] = {run};
    ASSIGN_OR_RETURN(budget.only_runs.emplace_back(), find_run(one));
  }
  return budget;
}

template <typename Entry>
Json list(const std::vector<Entry>& entries) {
  Json json = Json::array();
  for (const Entry& entry : entries)
    json.push_back({{"path", entry.path.string()}, {"bytes", entry.bytes}, {"why", entry.why}});
  return json;
}

// Builds are many and alike: one line for all of them.
void print(const DiskAccount& account, const DiskBudget& budget) {
  const char* const verb = budget.dry_run ? "would drop" : "dropped";
  std::int64_t builds = 0;
  std::int64_t build_bytes = 0;
  for (const Dropped& one : account.dropped) {
    if (one.path.string().starts_with(budget.cache.string())) {
      ++builds;
      build_bytes += one.bytes;
    } else {
      fmt::print("{} {} ({}): {}\n", verb, one.path.string(), size_text(one.bytes), one.why);
    }
  }
  if (builds > 0)
    fmt::print("{} {} builds ({}) of {}: they are made again when they are needed\n", verb, builds,
               size_text(build_bytes), budget.cache.string());
  for (const Kept& one : account.kept)
    fmt::print("kept {} ({}): {}\n", one.path.string(), size_text(one.bytes), one.why);
  fmt::print("{} before, {} {}; {} wanted\n", size_text(account.before_bytes),
             size_text(account.after_bytes), budget.dry_run ? "it would be" : "now",
             size_text(budget.keep_bytes));
}

}  // namespace

int gc_command(const Options& options) {
  const Result<DiskBudget> budget = read_budget(options);
  if (!budget.ok()) return report_error(budget.error(), options);
  const Result<DiskAccount> account = collect_garbage(*budget);
  if (!account.ok()) return report_error(account.error(), options);
  if (options.json())
    fmt::print("{}\n", json_text(Json{{"before_bytes", account->before_bytes},
                                      {"after_bytes", account->after_bytes},
                                      {"keep_bytes", budget->keep_bytes},
                                      {"dry_run", budget->dry_run},
                                      {"dropped", list(account->dropped)},
                                      {"kept", list(account->kept)}}));
  else
    print(*account, *budget);
  return account->after_bytes <= budget->keep_bytes ? kDone : kNo;
}

}  // namespace kbeam::cli
