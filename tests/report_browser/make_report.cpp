// make_report FOLDER ATTEMPTS [CHECKS]: an archive of a made-up campaign with the events that a
// loop writes, and the reports made from what that archive gives back. `kbeam status FOLDER` and
// `kbeam report FOLDER` work on it too.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "archive/archive.h"
#include "loop/baseline.h"
#include "loop/summary.h"
#include "model/json_forms.h"
#include "report/report.h"
#include "report/synthetic_campaign.h"

namespace kbeam {
namespace {

BaselineFacts make_baseline(const ReportInput& campaign) {
  BaselineFacts baseline;
  baseline.name = "lapack";
  baseline.portfolio.family = "baseline";
  baseline.portfolio.rows = {{.source = "// lapack", .source_name = "lapack.cpp"}};
  baseline.portfolio.id = candidate_id(baseline.portfolio);
  baseline.all_cores_portfolio = baseline.portfolio;
  for (const CaseCeilings& row : campaign.ceilings) {
    baseline.case_ns[row.case_name] = row.baseline_ns;
    baseline.ceilings[row.case_name] = {row.ceiling_ns, row.flops, row.bytes};
  }
  return baseline;
}

Result<void> append_attempt(Archive& archive, const ReportInput& campaign, std::size_t index) {
  const Evaluation& evaluation = campaign.evaluations[index];
  RETURN_IF_ERROR(archive.append_evaluation(evaluation));
  if (evaluation.stage == Stage::screen) {
    Json speedup = Json::object();
    for (const Measurement& measurement : evaluation.measurements)
      speedup[measurement.case_name] = measurement.summary.speedup;
    RETURN_IF_ERROR(archive.append_event("observation",
                                         {{"candidate_id", evaluation.candidate_id},
                                          {"verdict", std::string(to_string(evaluation.verdict))},
                                          {"speedup", std::move(speedup)},
                                          {"used_s", 1.4 * static_cast<double>(index + 1)},
                                          {"busy_s", 1.35 * static_cast<double>(index + 1)}}));
  }
  const int number = static_cast<int>(index) + 1;
  for (const LadderStep& step : campaign.ladder)
    if (step.evaluation == number)
      RETURN_IF_ERROR(archive.append_event("champion", to_json(step.champion)));
  for (const RoleChange& change : campaign.roles)
    if (change.evaluation == number)
      RETURN_IF_ERROR(
          archive.append_event("role", {{"family", change.family}, {"role", change.role}}));
  return {};
}

Result<void> fill_archive(Archive& archive, const ReportInput& campaign) {
  RETURN_IF_ERROR(archive.append_event("baseline", to_json(make_baseline(campaign))));
  for (const RoleChange& change : campaign.roles)
    if (change.evaluation == 0)
      RETURN_IF_ERROR(
          archive.append_event("role", {{"family", change.family}, {"role", change.role}}));
  for (const Idea& idea : campaign.ideas) RETURN_IF_ERROR(archive.append_idea(idea));
  for (const Candidate& candidate : campaign.candidates)
    RETURN_IF_ERROR(archive.append_candidate(candidate));
  for (std::size_t i = 0; i < campaign.evaluations.size(); ++i)
    RETURN_IF_ERROR(append_attempt(archive, campaign, i));
  for (const auto& [subject, text] : campaign.decisions)
    RETURN_IF_ERROR(archive.append_decision({text, subject, "synthetic"}));
  Json families = Json::array();
  for (const FamilyState& family : campaign.families) families.push_back(to_json(family));
  RETURN_IF_ERROR(archive.append_event("families", {{"families", std::move(families)}}));
  return archive.append_event("stop", campaign.summary);
}

Result<void> make_report(const std::filesystem::path& folder, int attempts, int checks) {
  ReportInput campaign = make_synthetic_campaign(attempts, 7, checks);
  campaign.config.problem_folder = campaign.config.problem_name;
  const std::filesystem::path file = folder / "archive.sqlite";
  {
    ASSIGN_OR_RETURN(const auto archive,
                     Archive::create(file, campaign.config, campaign.environment));
    RETURN_IF_ERROR(archive->together([&] { return fill_archive(*archive, campaign); }));
  }
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(file));
  ASSIGN_OR_RETURN(const ReportInput input, gather_report(*archive, campaign.problem));
  return write_reports(input, folder);
}

}  // namespace
}  // namespace kbeam

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::fprintf(stderr, "usage: make_report FOLDER ATTEMPTS [CHECKS]\n");
    return 2;
  }
  const kbeam::Result<void> made =
      kbeam::make_report(argv[1], std::atoi(argv[2]), argc == 4 ? std::atoi(argv[3]) : 1);
  if (made.ok()) return 0;
  std::fprintf(stderr, "%s\n", made.error().text().c_str());
  return 1;
}
