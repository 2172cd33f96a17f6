#include "model/verdict.h"

#include <array>
#include <utility>

namespace kbeam {
namespace {

constexpr std::array kVerdicts{
    std::pair{Verdict::accepted, std::string_view("accepted")},
    std::pair{Verdict::build_failed, std::string_view("build_failed")},
    std::pair{Verdict::build_timed_out, std::string_view("build_timed_out")},
    std::pair{Verdict::refused_object, std::string_view("refused_object")},
    std::pair{Verdict::bad_plan, std::string_view("bad_plan")},
    std::pair{Verdict::crashed, std::string_view("crashed")},
    std::pair{Verdict::timed_out, std::string_view("timed_out")},
    std::pair{Verdict::over_memory, std::string_view("over_memory")},
    std::pair{Verdict::wrong_value, std::string_view("wrong_value")},
    std::pair{Verdict::not_finite, std::string_view("not_finite")},
    std::pair{Verdict::read_outside, std::string_view("read_outside")},
    std::pair{Verdict::wrote_outside, std::string_view("wrote_outside")},
    std::pair{Verdict::mutated_input, std::string_view("mutated_input")},
    std::pair{Verdict::late_write, std::string_view("late_write")},
    std::pair{Verdict::undefined_behaviour, std::string_view("undefined_behaviour")},
    std::pair{Verdict::left_threads, std::string_view("left_threads")},
    std::pair{Verdict::race, std::string_view("race")},
    std::pair{Verdict::not_repeatable, std::string_view("not_repeatable")},
    std::pair{Verdict::failed_private, std::string_view("failed_private")},
    std::pair{Verdict::below_physics_floor, std::string_view("below_physics_floor")},
    std::pair{Verdict::broke_sandbox, std::string_view("broke_sandbox")},
    std::pair{Verdict::too_noisy, std::string_view("too_noisy")},
    std::pair{Verdict::not_supported, std::string_view("not_supported")},
    std::pair{Verdict::engine_failed, std::string_view("engine_failed")},
};

constexpr std::array kComparisons{
    std::pair{Comparison::faster, std::string_view("faster")},
    std::pair{Comparison::same, std::string_view("same")},
    std::pair{Comparison::slower, std::string_view("slower")},
    std::pair{Comparison::ambiguous, std::string_view("ambiguous")},
};

template <typename Table, typename Value>
std::string_view word_of(const Table& table, Value value) {
  for (const auto& [entry, word] : table)
    if (entry == value) return word;
  return "unknown";
}

template <typename Value, typename Table>
std::optional<Value> value_of(const Table& table, std::string_view word) {
  for (const auto& [entry, name] : table)
    if (name == word) return entry;
  return std::nullopt;
}

constexpr auto kEveryVerdict = [] {
  std::array<Verdict, kVerdicts.size()> list{};
  for (std::size_t i = 0; i < kVerdicts.size(); ++i) list[i] = kVerdicts[i].first;
  return list;
}();

}  // namespace

std::string_view to_string(Verdict verdict) {
  return word_of(kVerdicts, verdict);
}
std::optional<Verdict> parse_verdict(std::string_view word) {
  return value_of<Verdict>(kVerdicts, word);
}
std::span<const Verdict> all_verdicts() {
  return kEveryVerdict;
}

Blame blame_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::accepted:
    case Verdict::too_noisy:
    case Verdict::not_supported:
      return Blame::nobody;
    case Verdict::engine_failed:
      return Blame::engine;
    default:
      return Blame::candidate;
  }
}

std::string_view to_string(Comparison comparison) {
  return word_of(kComparisons, comparison);
}
std::optional<Comparison> parse_comparison(std::string_view word) {
  return value_of<Comparison>(kComparisons, word);
}

}  // namespace kbeam
