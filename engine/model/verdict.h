// The closed list of ways an evaluation can end, and how two candidates compare. JSON and docs use
// these words.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace kbeam {

enum class Verdict {
  accepted,
  // the candidate's
  build_failed,
  build_timed_out,
  refused_object,
  bad_plan,
  crashed,
  timed_out,
  over_memory,
  wrong_value,
  not_finite,
  read_outside,
  wrote_outside,
  mutated_input,
  late_write,
  undefined_behaviour,
  left_threads,
  race,
  not_repeatable,
  failed_private,
  below_physics_floor,
  broke_sandbox,
  // nobody's
  too_noisy,
  not_supported,
  // ours: retried, never counted against the candidate
  engine_failed,
};

enum class Blame { nobody, candidate, engine };

std::string_view to_string(Verdict verdict);
std::optional<Verdict> parse_verdict(std::string_view word);
std::span<const Verdict> all_verdicts();
Blame blame_of(Verdict verdict);

enum class Comparison { faster, same, slower, ambiguous };

std::string_view to_string(Comparison comparison);
std::optional<Comparison> parse_comparison(std::string_view word);

}  // namespace kbeam
