// Text from models, agents, people and files ends in tables, prompts and on terminals: what it may
// be there.
#pragma once

#include <string>
#include <string_view>

namespace kbeam {

// Without characters that move a cursor, colour a terminal or begin another line: a blank stands
// for each.
std::string one_line(std::string_view text);

// Letters, digits, _ - and ., 64 at most, no point in front: of families and files.
bool is_plain_name(std::string_view name);

}  // namespace kbeam
