#include "check/separation_figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace kbeam {
namespace {

constexpr char kClaimPrefix[] = "// caught by: ";
constexpr char kOn[] = " on ";
constexpr char kExcept[] = " except ";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  return first == std::string::npos
             ? ""
             : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(trimmed(part));
  return parts;
}

// Errors relative to their limit where there is one: limits differ by column and by size.
double excess(const CheckFigure& figure) {
  return figure.limit > 0 ? figure.value / figure.limit : figure.value;
}

bool claims(const Sighting& sighting) {
  const auto& all = sighting.candidate->claims;
  return std::any_of(all.begin(), all.end(), [&](const CheatClaim& claim) {
    return claim.check == sighting.figure.name && claim.covers(sighting.family);
  });
}

using RowKey = std::pair<std::string, std::string>;  // case, check

void take_honest(SeparationRow& row, const Sighting& sighting) {
  row.honest = sighting.figure.value;
  row.limit = sighting.figure.limit;
  row.unit = sighting.figure.unit;
  row.honest_by = sighting.candidate->name;
}

bool within(double a, double b, double factor) {
  return a == b || (a <= b * factor && b <= a * factor);
}

std::string moved(const SeparationRow& row, const char* what, double from, double to) {
  return fmt::format("case {}, check {}: {} was {:.4g} {}, is {:.4g}", row.case_name, row.check,
                     what, from, row.unit, to);
}

void compare_rows(const SeparationRow& was, const SeparationRow& is,
                  std::vector<std::string>& drift) {
  if (!within(was.limit, is.limit, 1.0001))
    drift.push_back(moved(is, "the limit", was.limit, is.limit));
  const double floor = is.limit / 20;
  if (!within(std::max(was.honest, floor), std::max(is.honest, floor), kDriftFactor))
    drift.push_back(moved(is, "the worst honest figure", was.honest, is.honest));
  if (was.has_cheat() != is.has_cheat() ||
      (is.has_cheat() && !within(was.cheat, is.cheat, kDriftFactor)))
    drift.push_back(moved(is, "the cheapest cheat", was.cheat, is.cheat));
}

}  // namespace

bool CheatClaim::covers(const std::string& family) const {
  const bool named = std::find(families.begin(), families.end(), family) != families.end();
  return families.empty() || named != except;
}

Result<std::vector<CheatClaim>> read_claims(const std::string& source, const std::string& name) {
  std::vector<CheatClaim> found;
  std::istringstream lines(source);
  std::string line;
  while (std::getline(lines, line) && line.rfind("//", 0) == 0) {
    if (line.rfind(kClaimPrefix, 0) != 0) continue;
    for (const std::string& group : split(line.substr(sizeof kClaimPrefix - 1), ';')) {
      const bool except = group.find(kExcept) != std::string::npos;
      const std::string word = except ? kExcept : kOn;
      const std::size_t at = group.find(word);
      const std::vector<std::string> families = at == std::string::npos
                                                    ? std::vector<std::string>()
                                                    : split(group.substr(at + word.size()), ',');
      for (const std::string& check : split(group.substr(0, at), ',')) {
        if (check.empty() || check.find(' ') != std::string::npos)
          return Error{ErrorCode::bad_input, "read the claims of " + name,
                       "'" + group + "' is not CHECK, CHECK on FAMILY, FAMILY",
                       "separate groups by semicolons; docs/problem.md has an example"};
        found.push_back({check, families, except});
      }
    }
  }
  return found;
}

std::vector<SeparationRow> separate(const std::vector<Sighting>& sightings,
                                    const std::vector<Case>& cases) {
  std::map<RowKey, std::pair<SeparationRow, double>> rows;  // with the worst honest excess
  std::vector<std::string> checks;
  for (const Sighting& sighting : sightings) {
    if (!sighting.candidate->honest) continue;
    const std::string& check = sighting.figure.name;
    if (std::find(checks.begin(), checks.end(), check) == checks.end()) checks.push_back(check);
    const double value = excess(sighting.figure);
    const auto [entry, is_new] =
        rows.try_emplace({sighting.case_name, check},
                         SeparationRow{.check = check,
                                       .case_name = sighting.case_name,
                                       .family = sighting.family,
                                       .cheat = std::numeric_limits<double>::quiet_NaN()},
                         -1.0);
    auto& [row, worst] = entry->second;
    if (!(value > worst) && !std::isnan(value)) continue;
    worst = value;
    take_honest(row, sighting);
  }
  for (const Sighting& sighting : sightings) {
    if (sighting.candidate->honest || !claims(sighting)) continue;
    const auto found = rows.find({sighting.case_name, sighting.figure.name});
    if (found == rows.end()) continue;
    auto& [row, worst] = found->second;
    const double value = excess(sighting.figure);
    if (!(value > worst)) continue;  // no harm done here, or a NaN, which nobody can call cheap
    const double scaled = row.limit > 0 ? value * row.limit : value;
    if (row.has_cheat() && row.cheat <= scaled) continue;
    row.cheat = scaled;
    row.cheat_by = sighting.candidate->name;
  }
  std::vector<SeparationRow> ordered;
  for (const std::string& check : checks)
    for (const Case& the_case : cases)
      if (const auto found = rows.find({the_case.name, check}); found != rows.end())
        ordered.push_back(found->second.first);
  return ordered;
}

std::vector<std::string> find_refusals(const std::vector<SeparationRow>& rows,
                                       const std::vector<KnownCandidate>& candidates,
                                       const std::vector<Sighting>& sightings) {
  std::vector<std::string> refusals;
  std::set<std::string> checks, caught;
  for (const SeparationRow& row : rows) {
    checks.insert(row.check);
    if (row.has_cheat()) caught.insert(row.check);
    if (std::string words = refusal(row); !words.empty()) refusals.push_back(std::move(words));
  }
  for (const std::string& check : checks)
    if (!caught.contains(check))
      refusals.push_back("check " + check +
                         " has no cheat to catch: no file of known_wrong/ says '" + kClaimPrefix +
                         check + "' and is worse than honest candidates");
  std::set<RowKey> proven;  // candidate, check
  for (const Sighting& sighting : sightings)
    if (!sighting.candidate->honest && claims(sighting) && !sighting.figure.passed())
      proven.insert({sighting.candidate->name, sighting.figure.name});
  for (const KnownCandidate& candidate : candidates)
    for (const CheatClaim& claim : candidate.claims)
      if (!proven.contains({candidate.name, claim.check}))
        refusals.push_back(candidate.name + " says that it is caught by " + claim.check +
                           ", but no case shows that");
  return refusals;
}

std::vector<std::string> find_drift(const std::vector<SeparationRow>& stored,
                                    const std::vector<SeparationRow>& measured) {
  std::vector<std::string> drift;
  std::map<RowKey, const SeparationRow*> known;
  for (const SeparationRow& row : stored) known[{row.case_name, row.check}] = &row;
  for (const SeparationRow& row : measured) {
    const auto found = known.find({row.case_name, row.check});
    if (found == known.end()) {
      drift.push_back("case " + row.case_name + ", check " + row.check + ": not stored");
      continue;
    }
    compare_rows(*found->second, row, drift);
    known.erase(found);
  }
  for (const auto& [key, row] : known)
    drift.push_back("case " + key.first + ", check " + key.second + ": stored, but not measured");
  return drift;
}

std::vector<SeparationClass> worst_of_classes(const std::vector<SeparationRow>& rows,
                                              const std::vector<Case>& cases) {
  std::vector<SeparationClass> classes;
  for (const SeparationRow& row : rows) {
    const bool timed = std::any_of(cases.begin(), cases.end(), [&](const Case& the_case) {
      return the_case.timed && the_case.name == row.case_name;
    });
    const std::string name = timed ? row.case_name + " (timed)" : row.family;
    const auto same = std::find_if(classes.begin(), classes.end(), [&](const SeparationClass& one) {
      return one.name == name && one.worst.check == row.check;
    });
    if (same == classes.end()) {
      classes.push_back({name, 1, row});
      continue;
    }
    ++same->cases;
    if (row.has_cheat() && (!same->worst.has_cheat() || row.ratio() < same->worst.ratio()))
      same->worst = row;
  }
  return classes;
}

}  // namespace kbeam
