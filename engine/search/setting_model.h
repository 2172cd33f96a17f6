// What told settings say of untried ones: a Gaussian process for every output (a score, a regime)
// over one set of settings, and the setting whose gain, summed over the outputs, is expected to be
// the largest. Failures are learned from too: a setting is discounted by how many of its
// surroundings failed. Does not decide when it is asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "search/gaussian_process.h"
#include "search/setting_sampler.h"

namespace kbeam {

class SettingModel {
 public:
  // One an output, larger is better; nothing where the setting did not work.
  using Scores = std::vector<std::optional<double>>;

  SettingModel(const KnobSpace& space, std::size_t outputs, std::uint64_t seed);

  // A second telling of a setting replaces the first.
  void tell(const Setting& setting, Scores scores);

  std::size_t worked() const;  // told settings with a score

  struct Promise {
    Setting setting;
    double gain = 0;  // summed over outputs; of logarithms where all scores are positive
    std::size_t best_output = 0;  // the one that gains most
  };
  // An output gains what it gets beyond `to_beat` or, where that says nothing or less, beyond its
  // own best. Nothing when no setting is left. Costs milliseconds, growing with the square of what
  // was told. Some settings must have worked.
  std::optional<Promise> most_promising(const Scores& to_beat, const SettingSampler& taken);

  // The told setting that worked and differs in fewest knobs; of equals the better.
  Setting nearest_told(const Setting& setting) const;

 private:
  struct Told {
    Setting setting;
    Point point;
    Scores scores;
    bool worked() const;
    double total() const;
  };
  struct Output {
    GaussianProcess process;
    std::vector<double> values;  // of what is learned, standard
    bool ratios = false;         // scores count by their logarithms
    double mean = 0;             // what `values` were made standard with
    double deviation = 0;
    double top = 0;  // the largest of `values`
    std::optional<Setting> best;
  };
  struct Witness {
    double distance = 0;
    bool worked = false;
  };
  struct PoolPlace {
    Setting setting;
    Point point;
    std::vector<GaussianProcess::Place> places;  // one an output
    std::vector<int> versions;
    std::size_t seen = 0;          // of told_, for the witnesses
    std::vector<Witness> nearest;  // told settings, the nearest first
  };

  Point point_of(const Setting& setting) const;
  double distance(const Point& a, const Point& b) const;
  void make_standard(std::size_t output);
  void update();
  void add_to_pool(Setting setting);
  void widen_pool();
  void catch_up(PoolPlace& one) const;
  static double chance_of_working(const PoolPlace& one);

  KnobSpace space_;
  std::vector<bool> ordered_;
  SettingSampler pool_sampler_;  // what is in the pool, or was
  std::vector<Output> outputs_;
  std::vector<Told> told_;  // as it came
  std::map<Setting, std::size_t> index_;
  std::size_t learned_ = 0;  // of told_, the data of the processes
  std::size_t fitted_at_ = 0;
  std::vector<PoolPlace> pool_;
  std::vector<std::optional<Setting>> widened_for_;  // one an output
};

}  // namespace kbeam
