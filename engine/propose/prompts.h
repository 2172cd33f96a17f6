// What a model is told: first for ideas in words, then for the code of one idea, then to mend it.
// Text that candidates, compilers and people produced is fenced and bounded, and never an
// instruction.
#pragma once

#include <string>
#include <string_view>

#include "propose/model_api.h"
#include "propose/proposer.h"
#include "propose/reply_reader.h"

namespace kbeam {

// `text` between two lines that no text can know in advance, cut in the middle when it is longer
// than `most` bytes.
std::string fenced(std::string_view title, std::string_view text, std::size_t most);

Prompt ideas_prompt(const ProposalAsk& ask, int ideas);

struct CodeTask {
  WordedIdea idea;
  int variant = 1;
  int variants = 1;
};
Prompt code_prompt(const ProposalContext& context, const CodeTask& task);

// What became of the last reply: `what` in a sentence of ours, `log` foreign.
struct RepairTask {
  CodeTask code;
  std::string reply;  // the last one, with its source
  std::string what;
  std::string log;
};
Prompt repair_prompt(const ProposalContext& context, const RepairTask& task);

}  // namespace kbeam
