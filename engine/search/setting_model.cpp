#include "search/setting_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace kbeam {
namespace {

constexpr std::size_t kMostInPool = 1500;  // a larger space is sampled
constexpr std::size_t kWitnesses = 5;      // told settings that say whether one works
constexpr double kRefitGrowth = 1.3;       // lengths are chosen again at so much more data

std::optional<double> plain_number(const std::string& text) {
  double number = 0;
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// Choices that rise, as numbers do: neighbours are alike.
bool is_ordered(const Knob& knob) {
  std::optional<double> before;
  for (const std::string& choice : knob.choices) {
    const auto number = plain_number(choice);
    if (!number || (before && *number <= *before)) return false;
    before = number;
  }
  return true;
}

std::vector<bool> ordered_knobs(const KnobSpace& space) {
  std::vector<bool> ordered;
  for (const Knob& knob : space.knobs()) ordered.push_back(is_ordered(knob));
  return ordered;
}

double normal_density(double z) {
  return std::exp(-z * z / 2) * 0.3989422804014327;
}

double normal_probability(double z) {
  return std::erfc(-z * 0.7071067811865476) / 2;
}

}  // namespace

SettingModel::SettingModel(const KnobSpace& space, std::size_t outputs, std::uint64_t seed)
    : space_(space),
      ordered_(ordered_knobs(space)),
      pool_sampler_(space, seed),
      widened_for_(outputs) {
  for (std::size_t output = 0; output < outputs; ++output)
    outputs_.push_back({.process = GaussianProcess(ordered_)});
}

bool SettingModel::Told::worked() const {
  return std::any_of(scores.begin(), scores.end(), [](const auto& score) { return score; });
}

double SettingModel::Told::total() const {
  double sum = 0;
  for (const auto& score : scores) sum += score.value_or(0);
  return sum;
}

void SettingModel::tell(const Setting& setting, Scores scores) {
  const auto [known, is_new] = index_.insert({setting, told_.size()});
  if (is_new) told_.push_back({setting, point_of(setting), {}});
  told_[known->second].scores = std::move(scores);
}

std::size_t SettingModel::worked() const {
  return static_cast<std::size_t>(
      std::count_if(told_.begin(), told_.end(), [](const Told& one) { return one.worked(); }));
}

Point SettingModel::point_of(const Setting& setting) const {
  Point point;
  for (std::size_t knob = 0; knob < setting.size(); ++knob) {
    const auto last = static_cast<double>(space_.knobs()[knob].choices.size() - 1);
    point.push_back(ordered_[knob] && last > 0 ? setting[knob] / last : setting[knob]);
  }
  return point;
}

double SettingModel::distance(const Point& a, const Point& b) const {
  double sum = 0;
  for (std::size_t knob = 0; knob < a.size(); ++knob)
    sum += ordered_[knob] ? std::abs(a[knob] - b[knob]) : (a[knob] == b[knob] ? 0 : 1);
  return sum;
}

// Scores as ratios, where they can be: twice as fast is as far from one as half. Standard, and the
// worst ones cut off, since how bad they are says nothing of where the best is. What failed counts
// as the worst that worked: the model then expects nothing beside it.
void SettingModel::make_standard(std::size_t index) {
  Output& output = outputs_[index];
  output.best.reset();
  double best = 0;
  std::vector<double> worked;
  for (const Told& one : told_) {
    const std::optional<double>& score = one.scores[index];
    if (!score) continue;
    worked.push_back(*score);
    if (output.best && *score <= best) continue;
    output.best = one.setting;
    best = *score;
  }
  output.values.assign(told_.size(), 0);
  output.deviation = output.top = 0;
  if (worked.empty()) return;
  output.ratios = std::all_of(worked.begin(), worked.end(), [](double value) { return value > 0; });
  const auto level = [&](double score) { return output.ratios ? std::log(score) : score; };
  for (double& value : worked) value = level(value);
  std::sort(worked.begin(), worked.end());
  const double middle = worked[worked.size() / 2], top = worked.back();
  const double floor =
      top > middle ? std::max(worked.front(), middle - 2 * (top - middle)) : worked.front();
  for (std::size_t i = 0; i < told_.size(); ++i) {
    const std::optional<double>& score = told_[i].scores[index];
    output.values[i] = score ? std::max(level(*score), floor) : floor;
  }
  const auto count = static_cast<double>(output.values.size());
  output.mean = std::accumulate(output.values.begin(), output.values.end(), 0.0) / count;
  double square = 0;
  for (const double value : output.values) square += (value - output.mean) * (value - output.mean);
  output.deviation = std::sqrt(square / count);
  for (double& value : output.values)
    value = output.deviation > 0 ? (value - output.mean) / output.deviation : 0;
  output.top = *std::max_element(output.values.begin(), output.values.end());
}

void SettingModel::update() {
  const bool refit =
      static_cast<double>(told_.size()) >= kRefitGrowth * static_cast<double>(fitted_at_);
  for (std::size_t index = 0; index < outputs_.size(); ++index) {
    make_standard(index);
    Output& output = outputs_[index];
    if (learned_ == 0) {
      std::vector<Point> points;
      for (const Told& one : told_) points.push_back(one.point);
      output.process.set_data(std::move(points), output.values);
    } else {
      for (std::size_t i = learned_; i < told_.size(); ++i)
        output.process.add(told_[i].point, output.values[i]);
      output.process.set_values(output.values);
    }
    if (refit) output.process.fit();
  }
  learned_ = told_.size();
  if (refit) fitted_at_ = learned_;
}

void SettingModel::add_to_pool(Setting setting) {
  PoolPlace one;
  one.point = point_of(setting);
  one.setting = std::move(setting);
  one.places.assign(outputs_.size(), {one.point, {}, 1});
  one.versions.assign(outputs_.size(), -1);
  pool_.push_back(std::move(one));
}

// The whole space or a sample of it, and all neighbours of every output's best.
void SettingModel::widen_pool() {
  if (pool_.empty())
    while (pool_.size() < kMostInPool) {
      const auto setting = pool_sampler_.draw();
      if (!setting) break;
      add_to_pool(*setting);
    }
  if (pool_.size() < kMostInPool) return;
  for (std::size_t index = 0; index < outputs_.size(); ++index) {
    const std::optional<Setting>& best = outputs_[index].best;
    if (!best || widened_for_[index] == best) continue;
    widened_for_[index] = best;
    for (int away = 1; away < space_.longest_knob(); ++away)
      for (Setting& setting : space_.neighbours_at(*best, away))
        if (pool_sampler_.take(setting)) add_to_pool(std::move(setting));
  }
}

void SettingModel::catch_up(PoolPlace& one) const {
  for (std::size_t index = 0; index < outputs_.size(); ++index) {
    const GaussianProcess& process = outputs_[index].process;
    GaussianProcess::Place& place = one.places[index];
    if (one.versions[index] != process.version()) {
      place.solved.clear();
      place.left = 1;
      one.versions[index] = process.version();
      one.seen = 0;
      one.nearest.clear();
    }
    process.catch_up(place);
  }
  for (; one.seen < told_.size(); ++one.seen) {
    const Told& told = told_[one.seen];
    const Witness witness{distance(one.point, told.point), told.worked()};
    const auto place = std::upper_bound(
        one.nearest.begin(), one.nearest.end(), witness,
        [](const Witness& a, const Witness& b) { return a.distance < b.distance; });
    one.nearest.insert(place, witness);
    if (one.nearest.size() > kWitnesses) one.nearest.pop_back();
  }
}

// The share of its nearest told settings that worked: what fails fails in blocks, where registers
// or memory run out.
double SettingModel::chance_of_working(const PoolPlace& one) {
  double worked = 0.25;
  for (const Witness& witness : one.nearest) worked += witness.worked ? 1 : 0;
  return worked / (static_cast<double>(one.nearest.size()) + 0.25);
}

std::optional<SettingModel::Promise> SettingModel::most_promising(const Scores& to_beat,
                                                                  const SettingSampler& taken) {
  update();
  widen_pool();
  std::erase_if(pool_, [&](const PoolPlace& one) { return taken.taken(one.setting); });
  std::vector<double> bar;
  for (std::size_t index = 0; index < outputs_.size(); ++index) {
    const Output& output = outputs_[index];
    bar.push_back(output.top);
    const std::optional<double>& told = to_beat[index];
    if (!told || output.deviation <= 0 || (output.ratios && *told <= 0)) continue;
    const double level = output.ratios ? std::log(*told) : *told;
    bar.back() = std::max(bar.back(), (level - output.mean) / output.deviation);
  }
  const PoolPlace* chosen = nullptr;
  Promise promise{{}, -1, 0};
  for (PoolPlace& one : pool_) {
    catch_up(one);
    double gain = 0, largest = -1;
    std::size_t best_output = 0;
    for (std::size_t index = 0; index < outputs_.size(); ++index) {
      const Output& output = outputs_[index];
      const auto [mean, deviation] = output.process.belief(one.places[index]);
      const double z = (mean - bar[index]) / std::max(deviation, 1e-9);
      const double part = std::max(output.deviation, 1e-9) * deviation *
                          (z * normal_probability(z) + normal_density(z));
      gain += part;
      if (part <= largest) continue;
      largest = part;
      best_output = index;
    }
    const double works = chance_of_working(one);
    if (gain * works * works <= promise.gain) continue;
    promise.gain = gain * works * works;
    promise.best_output = best_output;
    chosen = &one;
  }
  if (!chosen) return std::nullopt;
  promise.setting = chosen->setting;
  return promise;
}

Setting SettingModel::nearest_told(const Setting& setting) const {
  const Told* nearest = nullptr;
  int least = 0;
  for (const Told& told : told_) {
    if (!told.worked()) continue;
    int differs = 0;
    for (std::size_t knob = 0; knob < setting.size(); ++knob)
      differs += told.setting[knob] != setting[knob] ? 1 : 0;
    if (nearest && (differs > least || (differs == least && told.total() <= nearest->total())))
      continue;
    nearest = &told;
    least = differs;
  }
  return nearest->setting;
}

}  // namespace kbeam
