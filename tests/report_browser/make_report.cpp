// make_report FOLDER ATTEMPTS: an archive of a made-up campaign, and the reports made from what
// that archive gives back.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "archive/archive.h"
#include "model/json_forms.h"
#include "report/report.h"
#include "report/synthetic_campaign.h"

namespace kbeam {
namespace {

Result<void> fill_archive(const std::filesystem::path& file, const ReportInput& campaign) {
  ASSIGN_OR_RETURN(const auto archive,
                   Archive::create(file, campaign.config, campaign.environment));
  for (const Idea& idea : campaign.ideas) RETURN_IF_ERROR(archive->append_idea(idea));
  for (const Candidate& candidate : campaign.candidates)
    RETURN_IF_ERROR(archive->append_candidate(candidate));
  for (const Evaluation& evaluation : campaign.evaluations)
    RETURN_IF_ERROR(archive->append_evaluation(evaluation));
  for (const auto& [subject, text] : campaign.decisions)
    RETURN_IF_ERROR(archive->append_decision({text, subject, ""}));
  for (const LadderStep& step : campaign.ladder)
    RETURN_IF_ERROR(archive->append_event(
        "champion", Json{{"evaluation", step.evaluation}, {"champion", to_json(step.champion)}}));
  for (const CaseCeilings& row : campaign.ceilings)
    RETURN_IF_ERROR(archive->append_event("ceilings", Json{{"case_name", row.case_name},
                                                           {"baseline_ns", row.baseline_ns},
                                                           {"flops", row.flops},
                                                           {"ceiling_ns", row.ceiling_ns}}));
  for (const FamilyState& family : campaign.families)
    RETURN_IF_ERROR(archive->append_event("family", to_json(family)));
  return archive->append_event("summary", campaign.summary);
}

Result<void> make_report(const std::filesystem::path& folder, int attempts) {
  ReportInput input = make_synthetic_campaign(attempts, 7);
  const std::filesystem::path file = folder / "archive.sqlite";
  RETURN_IF_ERROR(fill_archive(file, input));
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(file));
  ASSIGN_OR_RETURN(input.evaluations, archive->evaluations());
  ASSIGN_OR_RETURN(input.candidates, archive->candidates());
  ASSIGN_OR_RETURN(input.ideas, archive->ideas());
  return write_reports(input, folder);
}

}  // namespace
}  // namespace kbeam

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make_report FOLDER ATTEMPTS\n");
    return 2;
  }
  const kbeam::Result<void> made = kbeam::make_report(argv[1], std::atoi(argv[2]));
  if (made.ok()) return 0;
  std::fprintf(stderr, "%s\n", made.error().text().c_str());
  return 1;
}
