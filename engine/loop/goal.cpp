#include "loop/goal.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
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

// Digits that no number has room for are infinite, which no figure is.
double number_in(const std::string& digits) {
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return read.ec == std::errc() ? value : HUGE_VAL;
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
  constexpr std::size_t kMostBytes = 1000;  // std::regex recurses, a call a character
  if (text.size() > kMostBytes)
    return Error{ErrorCode::bad_input, "read the goal", fmt::format("it has {} bytes", text.size()),
                 fmt::format("say it in {} bytes at most", kMostBytes)};
  static const std::regex kTerm(
      R"(\s*(speedup(?:\(([\w+]+)\))?|geomean|slower|case\s+(\w+)|roofline\(\s*(\w+)\s*\))\s*(<=|>=|<|>)\s*(?:(best)(?:\s*\*\s*([0-9]+(?:\.[0-9]+)?))?|([0-9]+(?:\.[0-9]+)?)\s*(ns|us|ms|s)?)\s*)");
  for (const std::string& either : split_words(text, "or")) {
    std::vector<Term> all_of;
    for (const std::string& part : split_words(either, "and")) {
      std::smatch match;
      if (!std::regex_match(part, match, kTerm))
        return refuse(part, "no comparison that kbeam knows");
      Term term;
      term.comparison = match[5];
      if (match[3].matched || match[4].matched) {
        term.quantity = match[3].matched ? Quantity::one_case : Quantity::roofline;
        term.case_name = match[match[3].matched ? 3 : 4];
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
          term.quantity != Quantity::geomean && term.quantity != Quantity::one_case;
      if (match[6].matched) {
        if (is_number) return refuse(part, match[1].str() + " is a plain number");
        term.unit = Term::Unit::of_best;
        term.value = match[7].matched ? number_in(match[7]) : 1;
      } else {
        if (match[9].matched == is_number)
          return refuse(
              part, is_number ? match[1].str() + " has no unit" : "a time needs ns, us, ms or s");
        term.unit = is_number ? Term::Unit::number : Term::Unit::ns;
        term.value = number_in(match[8]) * (is_number ? 1 : nanoseconds_in(match[9]));
      }
      if (!std::isfinite(term.value)) return refuse(part, "the number is out of range");
      all_of.push_back(term);
    }
    goal.any_of_.push_back(std::move(all_of));
  }
  return goal;
}

Result<Goal> Goal::parse(const std::string& text, const Problem& problem) {
  std::vector<std::string> cases;
  for (const Case& the_case : problem.timed_cases()) cases.push_back(the_case.name);
  std::string baselines;
  for (const BaselineSpec& spec : problem.baselines)
    baselines += (baselines.empty() ? "" : "+") + spec.name;
  return parse(text, cases, baselines);
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
    case Quantity::roofline: {
      const auto found = figures.case_ns.find(term.case_name);
      const auto roof = figures.roof_ns.find(term.case_name);
      if (found == figures.case_ns.end() || roof == figures.roof_ns.end()) return false;
      value = roof->second / found->second;
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

std::vector<std::string> Goal::roofs_wanted() const {
  std::vector<std::string> cases;
  for (const std::vector<Term>& all_of : any_of_)
    for (const Term& term : all_of)
      if (term.quantity == Quantity::roofline) cases.push_back(term.case_name);
  return cases;
}

bool Goal::met_by(const GoalFigures& figures) const {
  return std::any_of(any_of_.begin(), any_of_.end(), [&](const std::vector<Term>& all_of) {
    return std::all_of(all_of.begin(), all_of.end(),
                       [&](const Term& term) { return holds(term, figures); });
  });
}

}  // namespace kbeam
