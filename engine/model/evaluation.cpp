#include "model/evaluation.h"

namespace kbeam {

std::string_view to_string(SandboxLevel level) {
  switch (level) {
    case SandboxLevel::none:
      return "none";
    case SandboxLevel::rlimits:
      return "rlimits";
    case SandboxLevel::landlock_seccomp:
      return "landlock_seccomp";
    case SandboxLevel::namespaces:
      return "namespaces";
  }
  return "unknown";
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::screen:
      return "screen";
    case Stage::confirm:
      return "confirm";
    case Stage::promote:
      return "promote";
    case Stage::manual:
      return "manual";
  }
  return "unknown";
}

Evaluation make_evaluation(Evaluation draft) {
  if (draft.verdict == Verdict::accepted) return draft;
  draft.measurements.clear();
  draft.held_out.reset();
  draft.generality_gap.reset();
  for (std::optional<PoolResult>* pool :
       {&draft.public_pool, &draft.private_pool, &draft.sealed_pool})
    if (*pool) (*pool)->speedup.reset();
  return draft;
}

}  // namespace kbeam
