// Pure statistics of paired timings: no clock, no process. Unknown is NaN or infinity, never 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/evaluation.h"

namespace kbeam {

double median(std::span<const double> values);  // NaN when empty

struct Interval {
  double low = 0;
  double high = 0;
};
// Distribution-free confidence interval of the median from order statistics; infinite when too few
// values.
Interval median_interval(std::span<const double> values, double confidence);

// The t for which Student's t lies within [-t, t] with this probability.
double student_quantile(double confidence, int degrees);

// Speedup of candidate over reference: exp of the median of ln(reference / candidate), its
// interval, and the decision: faster when low > 1 + delta, slower when high < 1 / (1 + delta), same
// when inside both and delta is small enough to mean something, else ambiguous. With several fresh
// processes the interval also covers Student's t over their medians.
PairedSummary summarise_pairs(const PairedSamples& samples, double confidence, double delta);

// What ranks a candidate: the mean of the least two fifths of the reference's times (at least two),
// over that of the candidate's. Neighbours only ever slow a call down, so few pairs rank truer by
// their fastest calls than by the median of their ratios: of identical kernels, five pairs stray
// by 2.5 to 4.1 % this way and by 3.7 to 6.2 % that way (tests/study but where it is crowded). No
// interval follows from it and nothing is claimed by it. NaN without samples.
double ranking_speedup(const PairedSamples& samples);

double geometric_mean(std::span<const double> values);
// The case-wise summaries as one: geometric mean of speedups with a bootstrap interval over
// processes and their pairs.
struct GeomeanSummary {
  double speedup = 0;
  double low = 0;
  double high = 0;
};
GeomeanSummary summarise_cases(std::span<const Measurement> measurements, double confidence,
                               std::uint64_t seed);

// How far from 1 identical kernels were seen to be, as a log-ratio: the farther end of the interval
// of an A/A control, or the farthest pair where there are too few for an interval.
double aa_noise(const PairedSamples& control, double confidence);

// Beyond this delta a machine cannot say of two kernels that they are the same.
inline constexpr double kWidestSame = 0.1;

// delta = max(0.5 %, 2 x timer resolution / bracket, noise of the A/A control).
double noise_floor(double aa_noise, double timer_resolution_ns, double bracket_ns);

}  // namespace kbeam
