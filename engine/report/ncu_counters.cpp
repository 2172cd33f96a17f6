#include "report/ncu_counters.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

namespace kbeam {
namespace {

// The fields of one line; quotes may surround a field, and "" stands for a quote inside.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else if (line[i] != '\r') {
      fields.back() += line[i];
    }
  }
  return fields;
}

struct Columns {
  std::size_t kernel = 0, metric = 0, unit = 0, value = 0;
};

std::optional<Columns> columns_of(const std::vector<std::string>& header) {
  const auto find = [&](const char* name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  const Columns columns{find("Kernel Name"), find("Metric Name"), find("Metric Unit"),
                        find("Metric Value")};
  if (std::max({columns.kernel, columns.metric, columns.unit, columns.value}) >= header.size())
    return std::nullopt;
  return columns;
}

// "199,040" in some languages of the terminal.
std::optional<double> number_of(std::string text) {
  std::erase(text, ',');
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? std::nullopt : std::optional(value);
}

Error refuse(const std::string& what) {
  return {
      ErrorCode::bad_input, "read ncu's counters", what,
      "make the file as docs/cuda.md shows: ncu --csv --print-kernel-base mangled --log-file FILE"};
}

}  // namespace

Result<std::vector<MeasuredCounter>> counters_from_ncu(std::string_view csv,
                                                       const std::set<std::string>& kernels) {
  std::optional<Columns> columns;
  struct Sum {
    double value = 0;
    int launches = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (std::size_t at = 0; at < csv.size();) {
    const std::size_t end = std::min(csv.find('\n', at), csv.size());
    const std::string_view line = csv.substr(at, end - at);
    at = end + 1;
    // ncu's own messages begin with ==, and a program's output may be in between.
    if (!line.starts_with('"')) continue;
    const std::vector<std::string> fields = fields_of(line);
    if (!columns) {
      columns = columns_of(fields);
      if (!columns) return refuse("its first row lacks a column for kernel, metric, unit or value");
      continue;
    }
    if (fields.size() <=
        std::max({columns->kernel, columns->metric, columns->unit, columns->value}))
      return refuse("it ends in the middle of a row");
    const std::string& kernel = fields[columns->kernel];
    const std::optional<double> value = number_of(fields[columns->value]);
    if (!kernels.contains(kernel) || !value) continue;
    const std::string& unit = fields[columns->unit];
    Sum& sum = sums[{kernel, fields[columns->metric] + (unit.empty() ? "" : " " + unit)}];
    sum.value += *value;
    ++sum.launches;
  }
  if (!columns) return refuse("it holds no table");
  if (sums.empty()) return refuse("it has no metric of a kernel of this plan");
  std::vector<MeasuredCounter> counters;
  for (const auto& [key, sum] : sums)
    counters.push_back({key.first, key.second, sum.value / sum.launches});
  return counters;
}

}  // namespace kbeam
