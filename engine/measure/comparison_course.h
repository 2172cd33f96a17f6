// The course of one comparison by its stopping rule: what the next fresh process has to time, what
// each look decides, when it ends. The judge of CPU candidates follows it, and so does the replay
// of recorded traces: there is no other decision. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/stopping_rule.h"
#include "model/evaluation.h"

namespace kbeam {

class ComparisonCourse {
 public:
  // The noise floor of a case whose call takes about so long.
  using DeltaFor = std::function<double(const std::string& case_name, double bracket_ns)>;
  ComparisonCourse(const StoppingRule& rule, std::size_t cases, DeltaFor delta_for);

  bool is_over() const { return is_over_; }
  int process() const { return process_; }  // the next fresh process, counted from 0
  int pairs() const { return pairs_in_process(rule_, process_); }  // that it takes of open cases
  bool is_open(std::size_t index) const { return open_[index]; }
  // The process just ended completed a look, and another one is to come.
  bool is_at_look() const;
  // What the next look adds, as a share of all pairs taken so far.
  double growth() const;

  // The samples of the process are in: at a look, open cases are decided or stay open.
  void end_process(std::span<Measurement> measurements);
  // Ends it at the look just taken: there is no time for another one.
  void cut_short(std::span<Measurement> measurements, const std::string& why);

 private:
  void look(std::span<Measurement> measurements, int number);

  StoppingRule rule_;
  DeltaFor delta_for_;
  std::vector<bool> open_;
  int process_ = 0;
  int pairs_so_far_ = 0;
  bool is_over_ = false;
};

}  // namespace kbeam
