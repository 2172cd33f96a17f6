#include "bench/beam_study/course.h"

#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/entropy.h"

namespace kbeam {
namespace {

constexpr double kLeastGain = 0.01;  // what a confirmation must show over the champion

class Course {
 public:
  Course(const World& world, MakeStrategy make, CourseConfig config)
      : world_(world), config_(std::move(config)) {
    config_.search.seed = derive_seed(config_.seed, "search");
    config_.search.cases = world.cases;
    std::vector<Sketch> opening;
    for (; arrived_ < world.arrivals.size() && world.arrivals[arrived_].at == 0; ++arrived_)
      opening.push_back(world.arrivals[arrived_].sketch);
    strategy_ = make(config_.search, std::move(opening));
  }

  std::vector<double> run() {
    while (left()) {
      receive();
      const auto candidate = strategy_->ask();
      if (!candidate) {
        spend();  // nothing to try: the time passes all the same
        continue;
      }
      candidates_[candidate->id] = *candidate;
      strategy_->tell(screen(*candidate));
      spend();
      confirm();
    }
    return reached_;
  }

 private:
  bool left() const { return static_cast<int>(reached_.size()) < config_.budget; }
  void spend() { reached_.push_back(reached()); }

  void receive() {
    for (; arrived_ < world_.arrivals.size() &&
           world_.arrivals[arrived_].at <= static_cast<int>(reached_.size());
         ++arrived_)
      strategy_->add(world_.arrivals[arrived_].sketch);
  }

  // The same setting shows the same noise to every strategy.
  Observation screen(const Candidate& candidate) const {
    const Truth truth = world_.truth(candidate);
    Observation seen{candidate.id, truth.verdict, {}};
    Random noise(derive_seed(config_.seed, "screen " + candidate.id));
    if (truth.verdict != Verdict::accepted) return seen;
    for (const auto& [name, speedup] : truth.speedup)
      seen.speedup[name] = speedup * std::exp(config_.screen_noise * noise.normal());
    return seen;
  }

  // One confirmation answers for all cases on which its candidate challenges.
  void confirm() {
    std::map<std::string, std::vector<std::string>> cases_of;
    for (const Search::Challenge& challenge : strategy_->challenges())
      cases_of[challenge.candidate_id].push_back(challenge.case_name);
    for (const auto& [id, cases] : cases_of) {
      const Candidate& candidate = candidates_.at(id);
      const Truth truth = world_.truth(candidate);
      Random noise(derive_seed(config_.seed, "confirm " + id));
      for (const std::string& name : cases) {
        const double speedup =
            truth.speedup.at(name) * std::exp(config_.confirm_noise * noise.normal());
        if (speedup > to_beat(name) * (1 + kLeastGain))
          strategy_->crown({name, id, candidate.family, speedup, speedup, speedup, 0});
        else
          strategy_->refuse(name, id);
      }
      if (left()) spend();
    }
  }

  double to_beat(const std::string& case_name) const {
    for (const Champion& champion : strategy_->champions())
      if (champion.case_name == case_name) return champion.speedup;
    return 1;
  }

  double reached() const {
    std::map<std::string, double> standing;
    for (const Champion& champion : strategy_->champions())
      standing[champion.case_name] =
          world_.truth(candidates_.at(champion.candidate_id)).speedup.at(champion.case_name);
    double sum = 0;
    for (const std::string& name : world_.cases) {
      const auto found = standing.find(name);
      sum += std::log((found == standing.end() ? 1.0 : found->second) / world_.optimum.at(name));
    }
    return sum / static_cast<double>(world_.cases.size());
  }

  const World& world_;
  CourseConfig config_;
  std::size_t arrived_ = 0;
  std::unique_ptr<Strategy> strategy_;
  std::map<std::string, Candidate> candidates_;
  std::vector<double> reached_;
};

}  // namespace

std::vector<double> run_course(const World& world, MakeStrategy make, const CourseConfig& config) {
  return Course(world, make, config).run();
}

}  // namespace kbeam
