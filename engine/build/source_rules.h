// What candidate source may not say, found before the compiler sees it. A tripwire that gives a
// clear reason early; the defence itself is that the compiler runs sandboxed and that the object is
// examined (object_rules.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "build/source_language.h"

namespace kbeam {

enum class SourceRule {
  header,
  computed_include,
  embedded_file,
  pragma,
  build_time,
  build_place,
  token_paste,
  line_marker,
  host_assembly
};

std::string_view to_string(SourceRule rule);

struct SourceRefusal {
  SourceRule rule;
  int line;
  std::string sentence;
  // "#pragma weak is not allowed [pragma]".
  std::string text() const { return sentence + " [" + std::string(to_string(rule)) + "]"; }
};

// A baseline may include the headers of the libraries that it links; everything else holds for
// both.
enum class SourceOrigin { candidate, baseline };

std::optional<SourceRefusal> find_refusal(std::string_view source, SourceOrigin origin,
                                          SourceLanguage language = SourceLanguage::cpp);

// Assembly in host code of a .cu: PTX belongs to kernels, and a plan needs neither. `host_half` is
// what cudafe++ leaves for the host compiler, where device code is switched off with #if 0;
// `source_name` is the name under which the candidate was compiled.
std::optional<SourceRefusal> find_host_assembly(std::string_view host_half,
                                                std::string_view source_name);

}  // namespace kbeam
