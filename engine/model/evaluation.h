// CheckReport, Measurement, Evaluation: what was seen when a candidate ran. An Evaluation cannot
// hold a speed when a check failed; make_evaluation sees to it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "model/verdict.h"

namespace kbeam {

struct CheckFigure {
  std::string name;  // "column_residual"
  double value = 0;
  double limit = 0;
  std::string unit;                               // "eps"
  std::string where;                              // "matrix 3, column 7"
  bool passed() const { return value <= limit; }  // false for NaN
};

// One case of one candidate: what was checked and what was found.
struct CheckReport {
  std::string case_name;
  Verdict verdict = Verdict::engine_failed;
  std::string grade;
  std::string sentence;  // when not accepted: what is wrong, where, found and expected
  std::vector<CheckFigure> figures;
  int outputs_checked = 0;
  std::uint64_t seed = 0;  // of the base inputs; with `key` it brings the very same input back
  std::uint64_t key = 0;   // of the call that failed, else of the first
};

// How strong the isolation was that stood behind a verdict, weakest link first.
enum class SandboxLevel { none, rlimits, landlock_seccomp, namespaces };
std::string_view to_string(SandboxLevel level);

// Paired samples of one case: candidate (a) against reference (b), the same fresh inputs, ABBA
// order.
struct PairedSamples {
  std::vector<double> candidate_ns;
  std::vector<double> reference_ns;
  std::vector<std::uint8_t> candidate_first;  // 1 where the candidate ran first in its pair
  std::vector<int> process;                   // which pair of fresh processes
};

// Summaries are derived from samples, never stored alone.
struct PairedSummary {
  double candidate_ns = 0;  // median
  double reference_ns = 0;
  double speedup = 0;  // exp(median of ln(reference / candidate))
  double low = 0;      // confidence interval of the speedup
  double high = 0;
  double confidence = 0;
  int pairs = 0;
  Comparison comparison = Comparison::ambiguous;
};

struct Measurement {
  std::string case_name;
  std::string reference;  // candidate id or baseline name
  // How much faster than the baseline the reference was known to be: speedups times this are
  // against the baseline. NaN: unknown, or the reference is the baseline itself.
  double reference_speedup = std::numeric_limits<double>::quiet_NaN();
  int threads = 1;
  PairedSamples samples;
  std::string stopping_rule;  // "screen 5", "confirm 15 x 2", "promote 9 x 3"
  std::string stop_reason;
  double noise_floor = 0;  // delta used by the decision
  PairedSummary summary;   // recomputed from samples when read back
};

enum class Stage { screen, confirm, promote, manual };
std::string_view to_string(Stage stage);

// How the cases of one pool went. Of a private pool that failed, `passed` is 0: pass or fail is all
// that it tells.
struct PoolResult {
  int cases = 0;
  int passed = 0;
  std::optional<double> speedup;  // geometric mean against the reference; nothing: not timed
};

// What a candidate had to pass before its promotion beside the checks: the same work in a watched
// build, or again.
struct GateResult {
  std::string name;  // "repeatable", "address_undefined", "thread", or a tool of the target
  Verdict verdict = Verdict::engine_failed;
  std::string sentence;  // what was compared, or what was found and where
  int cases = 0;
  double took_s = 0;
};

struct Evaluation {
  std::string id;
  std::string candidate_id;
  Stage stage = Stage::screen;
  Verdict verdict = Verdict::engine_failed;
  std::string reason;  // one sentence, when not accepted
  std::string grade;
  SandboxLevel sandbox = SandboxLevel::none;
  std::vector<std::string> weaknesses;  // what of the assurance was missing here, in words
  std::vector<CheckReport> checks;
  std::vector<Measurement> measurements;  // empty unless accepted
  std::optional<PoolResult> public_pool;
  std::optional<PoolResult> private_pool;
  std::optional<PoolResult> sealed_pool;
  // Speedup on public cases over that on private and sealed ones, less 1: what of it is special to
  // the benchmark. Nothing where no held-out case was timed.
  std::optional<double> generality_gap;
  std::optional<std::vector<Measurement>> held_out;  // timed private and sealed cases
  std::optional<std::uint64_t> sealed_seed;          // drawn once the candidate was frozen
  std::optional<std::vector<GateResult>> gates;      // of a promotion
  // The case that failed, for the loop alone: it may be private, so it is never written down.
  std::string failed_case;
  double build_s = 0;
  double check_s = 0;
  double measure_s = 0;
  std::int64_t started_unix_ms = 0;
  std::int64_t ended_unix_ms = 0;
};

// Drops measurements unless the verdict is accepted, so that no failed candidate has a speed.
Evaluation make_evaluation(Evaluation draft);

}  // namespace kbeam
