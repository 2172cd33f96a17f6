// Reads what a model wrote: ideas in JSON, or one source in a code block. Foreign text: whatever it
// says, all that can come of it is ideas and source text, and everything else is a named outcome.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "propose/proposer.h"

namespace kbeam {

// An idea as a model words it; lengths are bounded, names are made plain.
struct WordedIdea {
  std::string family;
  std::string category;
  std::string hypothesis;
  std::string expected;
  std::string risk;
};

struct IdeasReply {
  ReplyOutcome outcome = ReplyOutcome::not_json;
  std::string detail;  // what is wrong, or what was left out
  std::vector<WordedIdea> ideas;
};
// An object {"ideas": [...]} or the array alone, bare or in a code block, with words around it.
IdeasReply read_ideas(std::string_view reply, int most);

struct CodeReply {
  ReplyOutcome outcome = ReplyOutcome::no_code_block;
  std::string detail;
  std::string source;
};
// The one block with a KBEAM_PLAN in it; blocks without one are quotations.
CodeReply read_code(std::string_view reply);

// Lower case, digits and underscores, at most 40 characters; "unnamed" when nothing is left.
std::string plain_name(std::string_view text);

}  // namespace kbeam
