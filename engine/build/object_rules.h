// Object admission: what compiled code may define, need and do when it is loaded. A tripwire with
// typed reasons; behaviour in the sandbox decides.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "build/source_language.h"

namespace kbeam {

enum class ObjectRule {
  malformed,
  missing_entry,
  external_linkage,
  constructor,
  ifunc,
  library,
  run_path,
  executable_stack,
  text_relocation,
  writable_code,
  driver_call,
};

std::string_view to_string(ObjectRule rule);

struct ObjectRefusal {
  ObjectRule rule;
  std::string sentence;
  // For people and for programs: "variable x has external linkage [external_linkage]".
  std::string text() const { return sentence + " [" + std::string(to_string(rule)) + "]"; }
};

inline constexpr char kEntrySymbol[] = "kbeam_candidate_plan";

// The compiler's output before it is linked: here linkage is still as the source has it. Of a .cu
// it is the host half, which may register its kernels and nothing else of the CUDA runtime.
std::optional<ObjectRefusal> find_object_refusal(std::string_view object,
                                                 SourceLanguage language = SourceLanguage::cpp);

// The shared object. `link`: the libraries ("openblas") that it may need beside those of the
// language.
std::optional<ObjectRefusal> find_module_refusal(std::string_view module,
                                                 std::span<const std::string> link,
                                                 SourceLanguage language = SourceLanguage::cpp);

// A function that the module of a .cu needs and that neither a library nor the planner has:
// readable, or nothing. The linker cannot say it, since the planner's functions are missing there
// too.
std::optional<std::string> find_unresolved(std::string_view module);

// A hash over code, constants, data and imports: equal for sources that differ only in text.
std::string hash_of_code(std::string_view module);

}  // namespace kbeam
