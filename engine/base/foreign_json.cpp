#include "base/foreign_json.h"

#include <nlohmann/json.hpp>

namespace kbeam {
namespace {

// Every value but the first follows a comma or opens what holds it.
bool is_bounded(std::string_view text) {
  int depth = 0;
  int values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestForeignJson || ++values > kMostForeignValues) return false;
    } else if (c == ',') {
      if (++values > kMostForeignValues) return false;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return true;
}

}  // namespace

Json parse_foreign_json(std::string_view text) {
  if (!is_bounded(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace kbeam
