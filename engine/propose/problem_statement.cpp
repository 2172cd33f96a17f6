#include "propose/problem_statement.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostReadmeBytes = 12'000;

std::string_view type_name(kbeam_element_type type) {
  switch (type) {
    case KBEAM_F32:
      return "f32";
    case KBEAM_F64:
      return "f64";
    case KBEAM_I32:
      return "i32";
    case KBEAM_I64:
      return "i64";
    default:
      return "other";
  }
}

std::string join(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string axes_text(const Problem& problem) {
  std::string text = "\n## Axes\n\n";
  for (const Axis& axis : problem.axes)
    text += axis.derived_from.empty()
                ? fmt::format("- `{}`: {} to {}\n", axis.name, axis.least, axis.most)
                : fmt::format("- `{}` = {}\n", axis.name, axis.derived_from);
  return text;
}

std::string tensors_text(const Problem& problem) {
  std::string text = "\n## Tensors\n\n";
  for (const TensorSpec& tensor : problem.tensors)
    text += fmt::format("- {} `{}`: {} [{}], slowest axis first in memory: {}\n",
                        tensor.role == KBEAM_INPUT ? "input" : "output", tensor.name,
                        type_name(tensor.type), join(tensor.shape, ", "),
                        join(tensor.memory_order, ", "));
  return text;
}

std::string cases_text(const Problem& problem) {
  std::string text = "\n## Cases\n\nThe timed ones are the score; every case must be right.\n\n";
  bool any_private = false;
  for (const Case& the_case : problem.cases) {
    if (the_case.pool != Pool::public_pool) {
      any_private = true;
      continue;
    }
    text += fmt::format("- `{}`{}: ", the_case.name, the_case.timed ? " (timed)" : "");
    for (const auto& [name, value] : the_case.axes) text += fmt::format("{} = {}, ", name, value);
    text += "inputs " + the_case.family + "\n";
  }
  if (any_private) text += "- and private cases, of which nothing is told but pass or fail\n";
  return text;
}

// What only private cases are made of says what they are.
bool is_public(const Problem& problem, const std::string& family) {
  return std::any_of(problem.cases.begin(), problem.cases.end(), [&](const Case& the_case) {
    return the_case.pool == Pool::public_pool && the_case.family == family;
  });
}

}  // namespace

std::string problem_statement(const Problem& problem) {
  std::string text = fmt::format("# {}: {}\n\n{}\n", problem.name, problem.title, problem.summary);
  text += axes_text(problem) + tensors_text(problem);
  text += "\n## Inputs\n\n";
  for (const FamilySpec& family : problem.families)
    if (is_public(problem, family.name))
      text += fmt::format("- {}: {}\n", family.name, family.text);
  text += cases_text(problem);
  text += "\n## Judged right when\n\n";
  for (const GradeSpec& grade : problem.grades)
    text += fmt::format("- grade {}: {}\n", grade.name, grade.text);
  text += "\n## Compared with\n\n";
  for (const BaselineSpec& baseline : problem.baselines)
    text += fmt::format("- {}: {}\n", baseline.name, baseline.text);
  const Result<std::string> readme = read_file(problem.folder / "README.md");
  if (!readme.ok()) return text;
  text += "\n## What the problem's README says\n\n" + readme->substr(0, kMostReadmeBytes);
  if (readme->size() > kMostReadmeBytes) text += "\n(cut here)\n";
  return text;
}

}  // namespace kbeam
