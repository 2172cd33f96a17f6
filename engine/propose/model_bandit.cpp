#include "propose/model_bandit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace kbeam {
namespace {

// What an ask is believed to gain before anything is known: a tenth of the champion's time.
constexpr double kPriorGain = 0.1;
// Part of the cost of an ask is the loop's own: its candidates are built and measured whatever the
// model charges. Without it a free model would win whatever it brings.
constexpr double kShareOfMean = 0.25;
constexpr double kCuriosity = 1;

}  // namespace

ModelBandit::ModelBandit(std::vector<std::string> models) {
  for (std::string& model : models) arms_.push_back({.model = std::move(model)});
  CHECK(!arms_.empty(), "a bandit needs a model to choose");
}

ModelArm* ModelBandit::find(const std::string& model) {
  const auto found = std::find_if(arms_.begin(), arms_.end(),
                                  [&](const ModelArm& arm) { return arm.model == model; });
  return found == arms_.end() ? nullptr : &*found;
}

const std::string& ModelBandit::choose() const {
  int asks = 0;
  double cost = 0;  // of one ask, summed over the models: how often each was asked does not count
  for (const ModelArm& arm : arms_) {
    if (arm.asks == 0) return arm.model;  // in the order in which they were named
    asks += arm.asks;
    cost += arm.cost / arm.asks;
  }
  const double mean_cost = cost > 0 ? cost / static_cast<double>(arms_.size()) : 1;
  const ModelArm* best = nullptr;
  double best_promise = -1;
  for (const ModelArm& arm : arms_) {
    const double gain = (arm.gain + kPriorGain) / (arm.asks + 1);
    const double ask_cost = arm.cost / arm.asks / mean_cost;
    const double worth = gain / (ask_cost + kShareOfMean);
    const double promise = worth * (1 + kCuriosity * std::sqrt(std::log(asks) / arm.asks));
    if (promise <= best_promise) continue;
    best_promise = promise;
    best = &arm;
  }
  return best->model;
}

void ModelBandit::note_ask(const std::string& model) {
  if (ModelArm* arm = find(model)) ++arm->asks;
}

void ModelBandit::note_cost(const std::string& model, double cost) {
  if (ModelArm* arm = find(model)) arm->cost += cost;
}

void ModelBandit::note_gain(const std::string& model, double gain) {
  if (ModelArm* arm = find(model)) arm->gain += gain;
}

}  // namespace kbeam
