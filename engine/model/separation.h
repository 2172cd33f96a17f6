// How far a check holds honest and cheating candidates apart, case by case: measured by `kbeam
// separation`, stored as separation.json beside the problem, refused where it is too little.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kbeam {

// One check on one case. Values and limit are in the check's unit; where limits differ from one
// output to another, `cheat` is scaled to `limit`.
struct SeparationRow {
  std::string check;
  std::string case_name;
  std::string family;
  std::string unit;
  double honest = 0;  // the worst of known_good/
  double limit = 0;
  double cheat = 0;  // the smallest that is worse than every honest one; NaN: no cheat shows here
  std::string honest_by;
  std::string cheat_by;

  bool has_cheat() const;
  // cheat / honest; infinite where honest candidates are exact.
  double ratio() const;
};

inline constexpr char kSeparationFile[] = "separation.json";
inline constexpr double kLeastSeparation = 10;

struct Separation {
  std::string problem;
  std::string grade;
  std::vector<SeparationRow> rows;
};

Json to_json(const Separation& separation);
Result<Separation> separation_from_json(const Json& json);
// `what` names the text in errors.
Result<Separation> separation_from_text(const std::string& text, const std::string& what);

// What is wrong with a row, in a sentence; empty when its limit stands between honest and cheating
// and these are kLeastSeparation apart.
std::string refusal(const SeparationRow& row);

}  // namespace kbeam
