#include "loop/campaign_search.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "build/source_scan.h"
#include "loop/baseline.h"
#include "loop/target_tools.h"
#include "propose/idea_file.h"

namespace kbeam {

Result<CampaignSearch> make_search(const Problem& problem, const CampaignConfig& campaign) {
  ASSIGN_OR_RETURN(const LoadedIdeas loaded, load_ideas(problem.folder));
  if (!loaded.mistakes.empty()) {
    std::string all;
    for (const std::string& mistake : loaded.mistakes) all += (all.empty() ? "" : "\n  ") + mistake;
    return Error{ErrorCode::bad_input, "read the ideas of " + problem.name, all, "mend ideas.toml"};
  }
  CampaignSearch made;
  std::vector<Sketch> sketches;
  for (const SketchFile& file : loaded.sketches) {
    if (target_of_file(file.path) != campaign.target || !asks_builtin(campaign)) continue;
    sketches.push_back(make_sketch({file.idea, file.source, file.path.filename().string()}));
    made.ideas.push_back(file.idea);
    made.sources.push_back(file.source);
  }
  SearchConfig config;
  config.seed = campaign.seed;
  config.beam = campaign.beam;
  config.random_choice = campaign.search == "random";
  config.in_flight = kBuildsAhead;
  for (const auto& [name, value] : regime_points(problem)) config.cases.push_back(name);
  made.search = Search::make(config, std::move(sketches));
  return made;
}

std::vector<std::string> proposer_names(const CampaignConfig& config) {
  std::vector<std::string> names;
  std::string_view rest = config.proposer;
  for (;;) {
    const std::size_t end = rest.find(kBetweenProposers);
    names.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) return names;
    rest.remove_prefix(end + kBetweenProposers.size());
  }
}

bool asks_builtin(const CampaignConfig& config) {
  const std::vector<std::string> names = proposer_names(config);
  return std::find(names.begin(), names.end(), "builtin") != names.end();
}

Sketch make_sketch(const Submission& submission) {
  const SourceKnobs scanned = scan_knobs(submission.source);
  return {.idea = submission.idea,
          .source = submission.source,
          .source_name = submission.source_name,
          .knobs = scanned.knobs,
          .constraints = scanned.constraints,
          .normalised_source = normalised_source(submission.source)};
}

}  // namespace kbeam
