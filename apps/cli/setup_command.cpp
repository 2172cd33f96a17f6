// kbeam setup: a folder in which a person starts a coding agent, or works by hand, on one problem.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "loop/target_tools.h"
#include "model/json_forms.h"
#include "propose/agent_workspace.h"
#include "propose/idea_file.h"
#include "propose/problem_statement.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kNoAttempts[] =
    "# Attempts\n\nNothing was tried here yet. Write down what you try and what came of it. Of a "
    "run, `kbeam ask`\nanswers with evaluation ids, and runs/RUN_ID/attempts_log.md has every "
    "attempt.\n";

// A name serves everywhere, a folder only as its whole path.
std::string lasting_name(const std::string& named) {
  if (named.find('/') == std::string::npos) return named;
  return fs::absolute(named).lexically_normal().string();
}

Result<ProposalContext> first_context(const Problem& problem, const std::string& named,
                                      const std::string& target) {
  ProposalContext context;
  context.problem = lasting_name(named);
  context.target = target;
  context.statement = problem_statement(problem);
  ASSIGN_OR_RETURN(const LoadedIdeas ideas, load_ideas(problem.folder));
  for (const SketchFile& sketch : ideas.sketches) {
    if (target_of_file(sketch.path) != target) continue;
    context.known_ideas.push_back(sketch.idea.family + ": " + sketch.idea.text);
    context.sources.push_back({.title = sketch.idea.text,
                               .source_name = sketch.path.filename().string(),
                               .source = sketch.source,
                               .knobs = "defaults"});
  }
  return context;
}

}  // namespace

int setup_command(const Options& options) {
  const fs::path folder = fs::absolute(options.get("DIR"));
  const std::string target = options.get("--target");
  const auto written = [&]() -> Result<void> {
    ASSIGN_OR_RETURN(const Home home, find_home());
    ASSIGN_OR_RETURN(const Problem problem, open_problem(options.get("--problem"), home, target));
    ASSIGN_OR_RETURN(const ProposalContext context,
                     first_context(problem, options.get("--problem"), target));
    return write_workspace({.folder = folder,
                            .contract_include = home.contract_include,
                            .kind = WorkspaceKind::by_hand,
                            .attempts = kNoAttempts},
                           context);
  }();
  if (!written.ok()) return report_error(written.error(), options);
  const std::string candidate = target == "cuda" ? "candidate.cu" : "candidate.cpp";
  if (options.json())
    fmt::print("{}\n", json_text(Json{{"folder", folder.string()},
                                      {"candidate", (folder / candidate).string()},
                                      {"instructions", (folder / "AGENTS.md").string()}}));
  else
    fmt::print("made {}: start an agent there, or try\n  cd {} && kbeam check {} --problem {}\n",
               folder.string(), folder.string(), candidate, lasting_name(options.get("--problem")));
  return kDone;
}

}  // namespace kbeam::cli
