// What a run shows to people: attempts_log.md and one self-contained report.html, made from loaded
// data. Reads and measures nothing itself.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {

// Reference lines of one timed case, measured in the campaign.
struct CaseCeilings {
  std::string case_name;
  double baseline_ns = 0;
  double flops = 0;
  double bytes = 0;
  std::map<std::string, double>
      ceiling_ns;  // "sgemm" -> the time this case would take at that speed
};

// A confirmed champion, and how many evaluations had been made when it was crowned.
struct LadderStep {
  int evaluation = 0;
  Champion champion;
};

// A family's part from here on: a role's word, or "retired".
struct RoleChange {
  int evaluation = 0;  // how many evaluations had been made
  std::string family;
  std::string role;
};

// All that a report shows. Gathered by the loop from the archive, so that report knows no other
// stage. Figures of an evaluation count as "against the baseline" when their reference is no
// candidate of this campaign.
struct ReportInput {
  CampaignConfig config;
  Environment environment;
  Problem problem;
  std::vector<Idea> ideas;
  std::vector<Candidate> candidates;
  std::vector<Evaluation> evaluations;           // in order
  std::map<std::string, std::string> decisions;  // candidate id -> what and why
  std::vector<FamilyState> families;
  std::vector<RoleChange> roles;  // in order; empty where the archive does not tell
  std::vector<Champion> champions;
  std::vector<LadderStep> ladder;      // every champion of every case, in order of crowning
  std::vector<Measurement> all_cores;  // the winner against the baseline on all cores; may be empty
  std::vector<CaseCeilings> ceilings;
  Json summary;       // the object that `run --json` ends with
  std::string rerun;  // the command line that begins such a run
};

// attempts_log.md: a one-page summary first, then every attempt, accepted or rejected. When there
// are more than `most_attempts`, the oldest are left out and the log says so.
std::string render_attempts_log(const ReportInput& input, int most_attempts = 1'000'000);
// One file, no network: data as JSON in the page (id="kbeam-data"), SVG drawn from it. Each drawn
// mark carries the value that it draws as data-value (and data-low, data-high).
std::string render_report_html(const ReportInput& input);

// Writes attempts_log.md and report.html.
Result<void> write_reports(const ReportInput& input, const std::filesystem::path& folder);

}  // namespace kbeam
