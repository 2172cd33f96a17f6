// What candidate source may not say, found before the compiler sees it. A tripwire that gives a
// clear reason early; the defence itself is that the compiler runs sandboxed and that the object is
// examined (object_rules.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kbeam {

enum class SourceRule { header, computed_include, embedded_file, pragma, build_time };

struct SourceRefusal {
  SourceRule rule;
  int line;
  std::string sentence;
};

// A baseline may include the headers of the libraries that it links; everything else holds for
// both.
enum class SourceOrigin { candidate, baseline };

std::optional<SourceRefusal> find_refusal(std::string_view source, SourceOrigin origin);

}  // namespace kbeam
