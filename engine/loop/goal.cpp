#include "loop/goal.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "base/spelling.h"

namespace kbeam {
namespace {

std::vector<std::string> split_words(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  const std::regex word("\\s+" + separator + "\\s+");
  std::copy(std::sregex_token_iterator(text.begin(), text.end(), word, -1),
            std::sregex_token_iterator(), std::back_inserter(parts));
  return parts;
}

double nanoseconds_in(const std::string& unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  return 1e9;
}

double geomean_of(const std::map<std::string, double>& times_ns) {
  double sum = 0;
  for (const auto& [name, time] : times_ns) sum += std::log(time);
  return std::exp(sum / static_cast<double>(times_ns.size()));
}

}  // namespace

Result<Goal> Goal::parse(const std::string& text, const std::vector<std::string>& cases,
                         const std::string& baseline) {
  Goal goal;
  if (text.empty()) return goal;
  const auto refuse = [&](const std::string& part, const std::string& why) {
    return Error{ErrorCode::bad_input, "read the goal '" + text + "'", "'" + part + "': " + why,
                 "write for instance 'speedup >= 6', 'geomean <= 3ms', 'case " +
                     (cases.empty() ? std::string("NAME") : cases.front()) + " < best * 0.98'"};
  };
  static const std::regex kTerm(
      R"(\s*(speedup(?:\((\w+)\))?|geomean|slower|case\s+(\w+))\s*(<=|>=|<|>)\s*(?:(best)(?:\s*\*\s*([0-9.]+))?|([0-9.]+)\s*(ns|us|ms|s)?)\s*)");
  for (const std::string& either : split_words(text, "or")) {
    std::vector<Term> all_of;
    for (const std::string& part : split_words(either, "and")) {
      std::smatch match;
      if (!std::regex_match(part, match, kTerm))
        return refuse(part, "no comparison that kbeam knows");
      Term term;
      term.comparison = match[4];
      if (match[3].matched) {
        term.quantity = Quantity::one_case;
        term.case_name = match[3];
        if (std::find(cases.begin(), cases.end(), term.case_name) == cases.end()) {
          const auto close = closest_word(term.case_name, cases);
          return refuse(part, close ? "no such timed case; did you mean " + *close + "?"
                                    : fmt::format("no such timed case; there are {}",
                                                  fmt::join(cases, ", ")));
        }
      } else if (match[1] == "geomean") {
        term.quantity = Quantity::geomean;
      } else if (match[1] == "slower") {
        term.quantity = Quantity::slower;
        if (term.comparison != "<=")
          return refuse(part, "how many cases may be slower is written slower <= N");
      } else if (match[2].matched && match[2] != baseline) {
        return refuse(part, "the baseline of this problem is " + baseline);
      }
      const bool is_number =
          term.quantity == Quantity::speedup || term.quantity == Quantity::slower;
      if (match[5].matched) {
        if (is_number) return refuse(part, match[1].str() + " is a plain number");
        term.unit = Term::Unit::of_best;
        term.value = match[6].matched ? std::stod(match[6]) : 1;
      } else {
        if (match[8].matched == is_number)
          return refuse(
              part, is_number ? match[1].str() + " has no unit" : "a time needs ns, us, ms or s");
        term.unit = is_number ? Term::Unit::number : Term::Unit::ns;
        term.value = std::stod(match[7]) * (is_number ? 1 : nanoseconds_in(match[8]));
      }
      all_of.push_back(term);
    }
    goal.any_of_.push_back(std::move(all_of));
  }
  return goal;
}

bool Goal::holds(const Term& term, const GoalFigures& figures) {
  // A figure that is not there yet cannot meet a goal.
  if (figures.case_ns.empty() || figures.case_ns.size() != figures.baseline_ns.size()) return false;
  double value = 0;
  double best = 0;
  switch (term.quantity) {
    case Quantity::speedup:
      value = geomean_of(figures.baseline_ns) / geomean_of(figures.case_ns);
      break;
    case Quantity::geomean:
      value = geomean_of(figures.case_ns);
      best = geomean_of(figures.baseline_ns);
      break;
    case Quantity::slower:
      for (const auto& [name, time_ns] : figures.case_ns)
        value += time_ns > figures.baseline_ns.at(name) ? 1 : 0;
      break;
    case Quantity::one_case: {
      const auto found = figures.case_ns.find(term.case_name);
      const auto base = figures.baseline_ns.find(term.case_name);
      if (found == figures.case_ns.end() || base == figures.baseline_ns.end()) return false;
      value = found->second;
      best = base->second;
      break;
    }
  }
  const double limit = term.unit == Term::Unit::of_best ? term.value * best : term.value;
  if (term.comparison == "<=") return value <= limit;
  if (term.comparison == "<") return value < limit;
  if (term.comparison == ">=") return value >= limit;
  return value > limit;
}

int Goal::slower_allowed() const {
  double most = 0;
  for (const std::vector<Term>& all_of : any_of_)
    for (const Term& term : all_of)
      if (term.quantity == Quantity::slower) most = std::max(most, term.value);
  return static_cast<int>(most);
}

bool Goal::met_by(const GoalFigures& figures) const {
  return std::any_of(any_of_.begin(), any_of_.end(), [&](const std::vector<Term>& all_of) {
    return std::all_of(all_of.begin(), all_of.end(),
                       [&](const Term& term) { return holds(term, figures); });
  });
}

}  // namespace kbeam
