// kbeam ask: a question about a run, answered from its archive with tables of facts.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/steering.h"
#include "archive/archive.h"
#include "loop/answers.h"
#include "model/json_forms.h"

namespace kbeam::cli {

int ask_command(const Options& options) {
  std::string run_id;
  const auto answer = [&]() -> Result<Answer> {
    ASSIGN_OR_RETURN(const Addressed to, read_addressed(options, "QUESTION"));
    run_id = to.run.filename().string();
    ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(to.run / "archive.sqlite"));
    ASSIGN_OR_RETURN(const RunFacts facts, gather_facts(*archive));
    return answer_question(facts, to.word);
  }();
  if (!answer.ok()) return report_error(answer.error(), options);
  if (options.json()) {
    Json json{{"run_id", run_id}};
    json.update(to_json(*answer));
    fmt::print("{}\n", json_text(json));
  } else {
    fmt::print("{}", to_text(*answer));
  }
  return answer->read_as.empty() ? kNo : kDone;
}

}  // namespace kbeam::cli
