// Which of several models is asked next: the one whose gain for its cost is the most promising,
// where little is known of a model counts for it. Pure and without chance: the same history gives
// the same choice.
#pragma once

#include <string>
#include <vector>

namespace kbeam {

struct ModelArm {
  std::string model;
  int asks = 0;
  double gain = 0;  // sum of Judgement::gain over what it brought
  double cost = 0;  // money; tokens where no model has a price
};

class ModelBandit {
 public:
  explicit ModelBandit(std::vector<std::string> models);
  const std::string& choose() const;
  void note_ask(const std::string& model);
  void note_cost(const std::string& model, double cost);
  void note_gain(const std::string& model, double gain);
  const std::vector<ModelArm>& arms() const { return arms_; }

 private:
  ModelArm* find(const std::string& model);

  std::vector<ModelArm> arms_;
};

}  // namespace kbeam
