// An archive -> what a person reads: attempts_log.md and one self-contained report.html. Reads only.
#pragma once

#include <filesystem>
#include <map>
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
  std::map<std::string, double> ceiling_ns;  // "sgemm" -> the time this case would take at that speed
};

// All that a report shows. Gathered by the loop from the archive, so that report knows no other stage.
struct ReportInput {
  CampaignConfig config;
  Environment environment;
  Problem problem;
  std::vector<Idea> ideas;
  std::vector<Candidate> candidates;
  std::vector<Evaluation> evaluations;  // in order
  std::map<std::string, std::string> decisions;  // candidate id -> what and why
  std::vector<FamilyState> families;
  std::vector<Champion> champions;
  std::vector<CaseCeilings> ceilings;
  Json summary;  // the object that `run --json` ends with
};

// attempts_log.md: a one-page summary first, then every attempt, accepted or rejected.
std::string render_attempts_log(const ReportInput& input);
// One file, no network: data as JSON in the page (id="kbeam-data"), SVG drawn from it.
std::string render_report_html(const ReportInput& input);

Result<void> write_reports(const ReportInput& input, const std::filesystem::path& folder);

}  // namespace kbeam
