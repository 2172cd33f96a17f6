// The JSON type of the engine (keys keep their order). Most headers want only this forward
// declaration.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace kbeam {
using Json = nlohmann::ordered_json;
}  // namespace kbeam
