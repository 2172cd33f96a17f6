// What may stand for a knob: a number, a name (also qualified), true or false. Anything else could
// smuggle code past the source that is archived.
#pragma once

#include <string_view>

namespace kbeam {

bool is_knob_name(std::string_view text);
bool is_knob_value(std::string_view text);

}  // namespace kbeam
