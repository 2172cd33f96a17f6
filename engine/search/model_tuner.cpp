// The model-based tuner: a Gaussian process over what was told says of every setting in a pool how
// much better than the best it is likely to be; the most promising one is asked next. Failures are
// learned from too: a setting is discounted by how many of its surroundings failed.
#include <kbeam/random.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "search/gaussian_process.h"
#include "search/setting_tuner.h"

namespace kbeam {
namespace {

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

class ModelTuner final : public SettingTuner {
 public:
  ModelTuner(const KnobSpace& space, std::uint64_t seed)
      : SettingTuner(space, seed),
        pool_sampler_(space, seed + 1),
        ordered_(ordered_knobs(space)),
        process_(ordered_) {}

  std::string name() const override { return "model"; }

 private:
  static constexpr std::size_t kFirstSettings = 8;  // told before the model is asked
  static constexpr std::size_t kMostInPool = 1500;  // a larger space is sampled
  static constexpr std::size_t kWitnesses = 5;      // told settings that say whether one works
  static constexpr double kRefitGrowth = 1.3;       // lengths are chosen again at so much more data

  struct Witness {
    double distance = 0;
    bool worked = false;
  };
  struct PoolPlace {
    Setting setting;
    GaussianProcess::Place place;
    int version = -1;
    std::size_t seen = 0;          // of order_, for the witnesses
    std::vector<Witness> nearest;  // told settings, the nearest first
  };

  void learn(const Setting& setting, std::optional<double> score) override {
    const auto known = told_.find(setting);
    if (known != told_.end()) {
      known->second = score;
      return;
    }
    told_[setting] = score;
    order_.push_back(setting);
  }

  std::optional<Setting> choose() override {
    if (count_worked() < kFirstSettings) return sampler_.draw();
    update_model();
    const auto best = best_told();
    widen_pool(best);
    std::optional<Setting> chosen = most_promising();
    if (!chosen) chosen = sampler_.draw();
    if (!chosen) return std::nullopt;
    sampler_.take(*chosen);
    parent_ = nearest_told(*chosen);
    return chosen;
  }

  std::size_t count_worked() const {
    return static_cast<std::size_t>(
        std::count_if(told_.begin(), told_.end(), [](const auto& one) { return one.second; }));
  }

  Setting best_told() const {
    const Setting* best = nullptr;
    double score = 0;
    for (const Setting& setting : order_)
      if (const auto& found = told_.at(setting); found && (!best || *found > score)) {
        best = &setting;
        score = *found;
      }
    return *best;
  }

  Point point_of(const Setting& setting) const {
    Point point;
    for (std::size_t knob = 0; knob < setting.size(); ++knob) {
      const auto last = static_cast<double>(space_.knobs()[knob].choices.size() - 1);
      point.push_back(ordered_[knob] && last > 0 ? setting[knob] / last : setting[knob]);
    }
    return point;
  }

  // Scores as ratios, where they can be: twice as fast is as far from one as half. Standard, and
  // the worst ones cut off, since how bad they are says nothing of where the best is. What failed
  // counts as the worst that worked: the model then expects nothing beside it.
  std::vector<double> standard_values() const {
    std::vector<double> worked;
    for (const Setting& setting : learned_)
      if (const auto& score = told_.at(setting)) worked.push_back(*score);
    const bool ratios =
        std::all_of(worked.begin(), worked.end(), [](double value) { return value > 0; });
    const auto level = [&](double score) { return ratios ? std::log(score) : score; };
    for (double& value : worked) value = level(value);
    std::sort(worked.begin(), worked.end());
    const double middle = worked[worked.size() / 2], top = worked.back();
    const double floor =
        top > middle ? std::max(worked.front(), middle - 2 * (top - middle)) : worked.front();
    std::vector<double> values;
    for (const Setting& setting : learned_) {
      const auto& score = told_.at(setting);
      values.push_back(score ? std::max(level(*score), floor) : floor);
    }
    const auto count = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
    double square = 0;
    for (const double value : values) square += (value - mean) * (value - mean);
    const double deviation = std::sqrt(square / count);
    for (double& value : values) value = deviation > 0 ? (value - mean) / deviation : 0;
    return values;
  }

  void update_model() {
    const bool anew = learned_.empty();
    const std::size_t before = learned_.size();
    learned_.insert(learned_.end(), order_.begin() + static_cast<std::ptrdiff_t>(before),
                    order_.end());
    const std::vector<double> values = standard_values();
    if (anew) {
      std::vector<Point> points;
      for (const Setting& setting : learned_) points.push_back(point_of(setting));
      process_.set_data(std::move(points), values);
    } else {
      for (std::size_t i = before; i < learned_.size(); ++i)
        process_.add(point_of(learned_[i]), values[i]);
      process_.set_values(values);
    }
    if (static_cast<double>(learned_.size()) < kRefitGrowth * static_cast<double>(fitted_at_))
      return;
    process_.fit();
    fitted_at_ = learned_.size();
  }

  void widen_pool(const Setting& best) {
    if (pool_.empty())
      while (pool_.size() < kMostInPool) {
        const auto setting = pool_sampler_.draw();
        if (!setting) break;
        pool_.push_back({*setting, {point_of(*setting), {}, 1}, -1, 0, {}});
      }
    if (pool_.size() < kMostInPool || widened_for_ == best) return;
    widened_for_ = best;
    for (int distance = 1; distance < space_.longest_knob(); ++distance)
      for (Setting& setting : space_.neighbours_at(best, distance))
        if (pool_sampler_.take(setting))
          pool_.push_back({setting, {point_of(setting), {}, 1}, -1, 0, {}});
  }

  void catch_up(PoolPlace& one) const {
    if (one.version != process_.version()) {
      one.place.solved.clear();
      one.place.left = 1;
      one.version = process_.version();
      one.seen = 0;
      one.nearest.clear();
    }
    process_.catch_up(one.place);
    for (; one.seen < order_.size(); ++one.seen) {
      const Setting& setting = order_[one.seen];
      const Witness witness{distance(one.place.point, point_of(setting)),
                            told_.at(setting).has_value()};
      const auto place = std::upper_bound(
          one.nearest.begin(), one.nearest.end(), witness,
          [](const Witness& a, const Witness& b) { return a.distance < b.distance; });
      one.nearest.insert(place, witness);
      if (one.nearest.size() > kWitnesses) one.nearest.pop_back();
    }
  }

  double distance(const Point& a, const Point& b) const {
    double sum = 0;
    for (std::size_t knob = 0; knob < a.size(); ++knob)
      sum += ordered_[knob] ? std::abs(a[knob] - b[knob]) : (a[knob] == b[knob] ? 0 : 1);
    return sum;
  }

  // The share of its nearest told settings that worked: what fails fails in blocks, where registers
  // or memory run out.
  static double chance_of_working(const PoolPlace& one) {
    double worked = 0.25;
    for (const Witness& witness : one.nearest) worked += witness.worked ? 1 : 0;
    return worked / (static_cast<double>(one.nearest.size()) + 0.25);
  }

  std::optional<Setting> most_promising() {
    std::erase_if(pool_, [&](const PoolPlace& one) { return sampler_.taken(one.setting); });
    const std::vector<double> values = standard_values();
    const double top = *std::max_element(values.begin(), values.end());
    const Setting* chosen = nullptr;
    double most = -1;
    for (PoolPlace& one : pool_) {
      catch_up(one);
      const auto [mean, deviation] = process_.belief(one.place);
      const double z = (mean - top) / std::max(deviation, 1e-9);
      const double gain = deviation * (z * normal_probability(z) + normal_density(z));
      const double works = chance_of_working(one);
      if (gain * works * works <= most) continue;
      most = gain * works * works;
      chosen = &one.setting;
    }
    if (!chosen) return std::nullopt;
    return *chosen;
  }

  // The told setting that it differs from in fewest knobs; of equals the better.
  Setting nearest_told(const Setting& setting) const {
    const Setting* nearest = nullptr;
    int least = 0;
    for (const Setting& told : learned_) {
      if (!told_.at(told)) continue;
      int differs = 0;
      for (std::size_t knob = 0; knob < told.size(); ++knob)
        differs += told[knob] != setting[knob] ? 1 : 0;
      if (nearest &&
          (differs > least || (differs == least && *told_.at(told) <= *told_.at(*nearest))))
        continue;
      nearest = &told;
      least = differs;
    }
    return *nearest;
  }

  SettingSampler pool_sampler_;  // what is in the pool, or was
  std::vector<bool> ordered_;
  GaussianProcess process_;
  std::map<Setting, std::optional<double>> told_;
  std::vector<Setting> order_;    // told_, as it came
  std::vector<Setting> learned_;  // of order_, the data of process_
  std::size_t fitted_at_ = 0;
  std::vector<PoolPlace> pool_;
  std::optional<Setting> widened_for_;
};

}  // namespace

std::unique_ptr<Tuner> make_model_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<ModelTuner>(space, seed);
}

}  // namespace kbeam
