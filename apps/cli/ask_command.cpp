// kbeam ask: a question about a run, answered from its archive with tables of facts; a model puts
// them into words where there is one.
#include <fmt/core.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "apps/cli/steering.h"
#include "archive/archive.h"
#include "loop/answers.h"
#include "loop/model_proposers.h"
#include "loop/phrasing.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

std::atomic<bool> interrupted{false};

struct Asked {
  std::string run_id;
  Answer answer;
  std::optional<Phrasing> phrasing;  // nothing: there is no model
};

Result<std::optional<LlmOptions>> choose_model(const Options& options, const Archive& archive) {
  if (options.has("--by")) {
    ASSIGN_OR_RETURN(LlmOptions named, read_model(options, options.get("--by")));
    return std::optional<LlmOptions>(std::move(named));
  }
  for (const OptionSpec& option : model_access_options())
    if (options.has(option.name))
      return Error{ErrorCode::bad_input, "ask with " + option.name,
                   "it is about a model, and none is named", "add --by llm:URL"};
  return model_of_run(archive);
}

Result<Asked> ask(const Options& options) {
  ASSIGN_OR_RETURN(const Addressed to, read_addressed(options, "QUESTION"));
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(to.run / "archive.sqlite"));
  std::optional<LlmOptions> model;
  if (!options.has("--plain")) {
    ASSIGN_OR_RETURN(model, choose_model(options, *archive));
  }
  ASSIGN_OR_RETURN(const RunFacts facts, gather_facts(*archive));
  Asked asked{.run_id = to.run.filename().string(),
              .answer = answer_question(facts, to.word),
              .phrasing = {}};
  const bool has_facts = !asked.answer.read_as.empty();
  if (model && has_facts) {
    std::signal(SIGINT, [](int) { interrupted = true; });
    asked.phrasing = phrase_answer(to.word, asked.answer, std::move(*model), interrupted);
  }
  return asked;
}

void print_phrasing(const Phrasing& phrasing) {
  if (phrasing.text.empty()) {
    fmt::print(stderr, "{} did not word the answer: {}\n", phrasing.model, phrasing.why_not);
    return;
  }
  fmt::print("{}\n\n({}'s words, {} tokens; the facts are these)\n", phrasing.text, phrasing.model,
             phrasing.usage.tokens_in + phrasing.usage.tokens_out);
}

}  // namespace

int ask_command(const Options& options) {
  const Result<Asked> asked = ask(options);
  if (!asked.ok()) return report_error(asked.error(), options);
  if (options.json()) {
    Json json{{"run_id", asked->run_id}};
    json.update(to_json(asked->answer));
    json["words"] = asked->phrasing ? to_json(*asked->phrasing) : Json();
    fmt::print("{}\n", json_text(json));
  } else {
    if (asked->phrasing) print_phrasing(*asked->phrasing);
    fmt::print("{}", to_text(asked->answer));
  }
  return asked->answer.read_as.empty() ? kNo : kDone;
}

}  // namespace kbeam::cli
