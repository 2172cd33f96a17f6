#include "measure/aa_study.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.h"

namespace kbeam {
namespace {

void append_pair(PairedSamples& to, const PairedSamples& from, std::size_t index, int process) {
  to.candidate_ns.push_back(from.candidate_ns[index]);
  to.reference_ns.push_back(from.reference_ns[index]);
  to.candidate_first.push_back(from.candidate_first[index]);
  to.process.push_back(process);
}

double log_ratio_median(const PairedSamples& samples) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.candidate_ns.size(); ++i)
    ratios.push_back(std::log(samples.reference_ns[i] / samples.candidate_ns[i]));
  return median(ratios);
}

}  // namespace

std::size_t AaStudy::count(Comparison comparison) const {
  return static_cast<std::size_t>(
      std::ranges::count(comparisons, comparison, &PairedSummary::comparison));
}

AaStudy study_identical_kernels(const PairedSamples& trace, const AaRequest& request) {
  std::map<int, std::vector<std::size_t>> of_process;
  for (std::size_t i = 0; i < trace.process.size(); ++i) of_process[trace.process[i]].push_back(i);
  std::vector<std::vector<std::size_t>> processes;
  for (auto& [process, indices] : of_process) processes.push_back(std::move(indices));

  const auto pairs = static_cast<std::size_t>(request.pairs);
  const auto control_pairs = static_cast<std::size_t>(request.control_pairs);
  const auto group = static_cast<std::size_t>(request.processes);
  AaStudy study;
  for (std::size_t first = 0; first + group <= processes.size(); first += group)
    for (std::size_t begin = 0;; begin += control_pairs + pairs) {
      bool whole = true;
      for (std::size_t i = first; i < first + group; ++i)
        whole &= begin + control_pairs + pairs <= processes[i].size();
      if (!whole) break;
      PairedSamples control;
      for (std::size_t i = 0; i < control_pairs; ++i)
        append_pair(control, trace, processes[first][begin + i], 0);
      PairedSamples compared;
      for (std::size_t process = 0; process < group; ++process)
        for (std::size_t i = 0; i < pairs; ++i)
          append_pair(compared, trace, processes[first + process][begin + control_pairs + i],
                      static_cast<int>(process));
      const double aa = control_pairs > 0 ? log_ratio_median(control) : 0;
      const double floor =
          noise_floor(aa, request.timer_resolution_ns, median(compared.candidate_ns));
      study.noise_floors.push_back(floor);
      study.comparisons.push_back(summarise_pairs(compared, request.confidence, floor));
    }
  return study;
}

}  // namespace kbeam
