// An answer from the archive in a model's words. The model gets the question and the tables and
// nothing else, and its words count for nothing: what they cite must be in the tables, which are
// shown with them.
#pragma once

#include <atomic>
#include <string>

#include "loop/answers.h"
#include "propose/llm_options.h"
#include "propose/model_api.h"
#include "propose/model_endpoint.h"

namespace kbeam {

struct Phrasing {
  std::string text;     // empty: there is none
  std::string why_not;  // then
  std::string model;
  Usage usage;  // whatever came of it
};
Json to_json(const Phrasing& phrasing);

Prompt phrasing_prompt(const std::string& question, const Answer& answer);

// The evaluations and candidates that a text cites, and the answer's tables do not hold.
std::vector<std::string> unknown_citations(const std::string& text, const Answer& answer);

// What a reply amounts to.
Phrasing read_phrasing(const ModelReply& reply, const ModelPrice& model, const Answer& answer);

// Asks the first of the models, and waits for it.
Phrasing phrase_answer(const std::string& question, const Answer& answer, LlmOptions options,
                       const std::atomic<bool>& interrupted);

}  // namespace kbeam
