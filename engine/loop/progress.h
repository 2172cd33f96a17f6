// What a running campaign tells whoever watches it. The loop never prints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/campaign.h"
#include "model/verdict.h"

namespace kbeam {

struct ProgressView {
  int round = 0;
  double used_s = 0;
  double budget_s = 0;  // 0: none
  int evaluations = 0;
  int budget_evaluations = 0;
  std::int64_t tokens = 0;  // of language models
  std::int64_t budget_tokens = 0;
  double device_s = 0;
  double budget_device_s = 0;
  double money = 0;
  double budget_money = 0;
  double best_speedup = 0;  // geometric mean of the champions; 0 until every case has one
  std::map<Verdict, int> rejects;
  std::vector<FamilyState> families;
  std::vector<Champion> champions;
};

class Progress {
 public:
  virtual ~Progress() = default;
  virtual void phase(std::string_view name) = 0;  // "measuring the baseline"
  virtual void event(std::string_view line) = 0;  // worth keeping: a new champion, a retired family
  virtual void attempt(std::string_view line) = 0;  // the latest attempt
  virtual void refresh(const ProgressView& view) = 0;
};

class SilentProgress final : public Progress {
 public:
  void phase(std::string_view) override {}
  void event(std::string_view) override {}
  void attempt(std::string_view) override {}
  void refresh(const ProgressView&) override {}
};

}  // namespace kbeam
