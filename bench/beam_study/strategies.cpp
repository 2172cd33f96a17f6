#include "bench/beam_study/strategies.h"

#include <kbeam/random.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/entropy.h"
#include "search/champion_board.h"
#include "search/sketch_tuning.h"

namespace kbeam {
namespace {

class BeamStrategy final : public Strategy {
 public:
  BeamStrategy(const SearchConfig& config, std::vector<Sketch> opening)
      : search_(Search::make(config, std::move(opening))) {}

  void add(Sketch sketch) override { search_->add(std::move(sketch)); }
  std::optional<Candidate> ask() override {
    auto proposal = search_->ask();
    if (!proposal) return std::nullopt;
    return std::move(proposal->candidate);
  }
  void tell(const Observation& observation) override { search_->tell(observation); }
  std::vector<Search::Challenge> challenges() override { return search_->challenges(); }
  void crown(const Champion& champion) override { search_->crown(champion); }
  void refuse(const std::string& case_name, const std::string& candidate_id) override {
    search_->refuse(case_name, candidate_id, "");
  }
  std::vector<Champion> champions() const override { return search_->champions(); }

 private:
  std::unique_ptr<Search> search_;
};

// A sketch in one population, with its tuner.
struct Member {
  SketchTuning tuning;
  std::size_t sketch = 0;
};

Candidate make_candidate(const Sketch& sketch, const KnobValues& knobs) {
  Candidate candidate;
  candidate.idea_id = sketch.idea.id;
  candidate.family = sketch.idea.family;
  candidate.rows.push_back(
      {.source = sketch.source, .source_name = sketch.source_name, .knobs = knobs});
  candidate.id = candidate_id(candidate);
  return candidate;
}

// What greedy and islands share: what was seen, who challenges whom, and greed in one population.
class Populations : public Strategy {
 public:
  Populations(const SearchConfig& config, int count)
      : config_(config),
        random_(derive_seed(config.seed, "choices")),
        members_(static_cast<std::size_t>(count)),
        turns_(static_cast<std::size_t>(count), 0) {}

  void add(Sketch sketch) override {
    const std::size_t index = sketches_.size();
    sketches_.push_back(std::move(sketch));
    untried_.push_back(index);
    join(index % members_.size(), index);
  }

  std::optional<Candidate> ask() override {
    while (!untried_.empty()) {
      const std::size_t sketch = untried_.front();
      untried_.pop_front();
      Member& member = *find_member(sketch % members_.size(), sketch);
      if (const auto suggestion = member.tuning.suggest_default())
        return note(member, suggestion->knobs, "");
    }
    return choose();
  }

  void tell(const Observation& observation) override {
    Seen& seen = seen_.at(observation.candidate_id);
    seen.observation = observation;
    seen.told = true;
    for (const Asked& asked : std::exchange(seen.asked, {}))
      tell_member(*find_member(asked.population, seen.sketch), seen, asked.aim, true);
  }

  std::vector<Search::Challenge> challenges() override {
    std::vector<Search::Challenge> found;
    if (!untried_.empty()) return found;
    for (const std::string& case_name : config_.cases) {
      const Champion* champion = board_.find(case_name);
      double to_beat = champion ? champion->speedup * (1 + config_.challenge_margin) : 0;
      const Seen* best = nullptr;
      for (const auto& [id, seen] : seen_) {
        const auto speedup = seen.observation.speedup.find(case_name);
        if (speedup == seen.observation.speedup.end() || speedup->second <= to_beat ||
            !board_.may_challenge(case_name, id))
          continue;
        best = &seen;
        to_beat = speedup->second;
      }
      if (best == nullptr) continue;
      board_.open_challenge(case_name, best->observation.candidate_id);
      found.push_back({case_name, best->observation.candidate_id, to_beat});
    }
    return found;
  }

  void crown(const Champion& champion) override {
    board_.crown(champion);
    correct(champion.candidate_id, champion.case_name, champion.speedup);
  }

  void refuse(const std::string& case_name, const std::string& candidate_id) override {
    board_.close_challenge(case_name, candidate_id);
    const Champion* champion = board_.find(case_name);
    if (champion == nullptr) return;
    const double screened = seen_.at(candidate_id).observation.speedup.at(case_name);
    correct(candidate_id, case_name, std::min(screened, champion->speedup));
  }

  std::vector<Champion> champions() const override { return board_.in_order(config_.cases); }

 protected:
  struct Asked {
    std::size_t population = 0;
    std::string aim;
  };
  struct Seen {
    std::size_t sketch = 0;
    KnobValues knobs;
    Observation observation;
    std::vector<Asked> asked;
    bool told = false;
  };

  virtual std::optional<Candidate> choose() = 0;

  Member& join(std::size_t population, std::size_t sketch) {
    const std::uint64_t seed = derive_seed(config_.seed, sketches_[sketch].idea.family, population);
    return members_[population].emplace_back(
        Member{SketchTuning(sketches_[sketch], config_.cases, seed), sketch});
  }

  Member* find_member(std::size_t population, std::size_t sketch) {
    for (Member& member : members_[population])
      if (member.sketch == sketch) return &member;
    return nullptr;
  }

  // The next setting around the population's best at the case whose turn it is. What another
  // population has measured is not measured again.
  std::optional<Candidate> ask_greedily(std::size_t population) {
    for (int attempt = 0; attempt < kMostRepeats; ++attempt) {
      const auto turn = static_cast<std::size_t>(turns_[population]++);
      const std::string& case_name = config_.cases[turn % config_.cases.size()];
      Member* best = best_member(population, case_name);
      const bool models_turn = (turn + turn / config_.cases.size()) % 2 == 1;
      const auto suggestion =
          best == nullptr ? std::nullopt : suggest_around(*best, case_name, models_turn);
      if (suggestion) {
        if (auto fresh = take(*best, population, suggestion->knobs, case_name)) return fresh;
      } else if (best == nullptr) {
        Member* any = any_member(population);
        if (any == nullptr) return std::nullopt;
        const auto drawn = any->tuning.suggest_random();
        if (!drawn) continue;
        if (auto fresh = take(*any, population, drawn->knobs, "")) return fresh;
      }
    }
    return std::nullopt;
  }

  // Local search and model take turns, as in the beam.
  std::optional<Suggestion> suggest_around(Member& member, const std::string& case_name,
                                           bool models_turn) {
    std::map<std::string, double> to_beat;
    for (const Champion& champion : board_.in_order(config_.cases))
      to_beat[champion.case_name] = champion.speedup;
    if (models_turn)
      if (const auto promise = member.tuning.promise(to_beat))
        return member.tuning.suggest_promised(*promise);
    return member.tuning.suggest_for(case_name);
  }

  std::optional<Candidate> take(Member& member, std::size_t population, const KnobValues& knobs,
                                const std::string& aim) {
    const std::string id = make_candidate(sketches_[member.sketch], knobs).id;
    const auto known = seen_.find(id);
    if (known == seen_.end() || !known->second.told) return note(member, knobs, aim, population);
    tell_member(member, known->second, aim, true);
    return std::nullopt;
  }

  Candidate note(Member& member, const KnobValues& knobs, const std::string& aim,
                 std::optional<std::size_t> population = std::nullopt) {
    const Candidate candidate = make_candidate(sketches_[member.sketch], knobs);
    Seen& seen = seen_[candidate.id];
    seen.sketch = member.sketch;
    seen.knobs = knobs;
    seen.asked.push_back({population.value_or(member.sketch % members_.size()), aim});
    return candidate;
  }

  void tell_member(Member& member, const Seen& seen, const std::string& aim, bool first) {
    member.tuning.tell({.knobs = seen.knobs,
                        .accepted = seen.observation.verdict == Verdict::accepted,
                        .speedup = seen.observation.speedup,
                        .aim = aim,
                        .first = first});
  }

  Member* best_member(std::size_t population, const std::string& case_name) {
    Member* best = nullptr;
    double most = 0;
    for (Member& member : members_[population]) {
      const double speedup = member.tuning.arms().at(case_name).best;
      if (member.tuning.exhausted() || speedup <= most) continue;
      best = &member;
      most = speedup;
    }
    return best;
  }

  Member* any_member(std::size_t population) {
    std::vector<Member*> open;
    for (Member& member : members_[population])
      if (!member.tuning.exhausted()) open.push_back(&member);
    return open.empty() ? nullptr : open[random_.below(open.size())];
  }

  void correct(const std::string& candidate_id, const std::string& case_name, double speedup) {
    Seen& seen = seen_.at(candidate_id);
    seen.observation.speedup[case_name] = speedup;
    for (std::deque<Member>& population : members_)
      for (Member& member : population)
        if (member.sketch == seen.sketch &&
            member.tuning.arms().at(case_name).scores.contains(seen.knobs))
          member.tuning.correct(seen.knobs, case_name, speedup);
  }

  static constexpr int kMostRepeats = 200;

  SearchConfig config_;
  Random random_;
  std::vector<Sketch> sketches_;
  std::deque<std::size_t> untried_;
  std::vector<std::deque<Member>> members_;  // by population
  std::vector<int> turns_;
  std::map<std::string, Seen> seen_;  // by candidate id
  ChampionBoard board_;
};

class Greedy final : public Populations {
 public:
  explicit Greedy(const SearchConfig& config) : Populations(config, 1) {}

 private:
  std::optional<Candidate> choose() override { return ask_greedily(0); }
};

class Islands final : public Populations {
 public:
  explicit Islands(const SearchConfig& config) : Populations(config, kIslands) {}

 private:
  static constexpr int kIslands = 4;
  static constexpr int kTurnsBetweenMigrations = 10;

  std::optional<Candidate> choose() override {
    for (int tried = 0; tried < kIslands; ++tried) {
      const std::size_t island = static_cast<std::size_t>(next_++ % kIslands);
      if (++visits_[island] % kTurnsBetweenMigrations == 0) migrate(island);
      if (members_[island].empty()) continue;
      if (auto candidate = ask_greedily(island)) return candidate;
    }
    return std::nullopt;
  }

  // The island's best setting at the case whose turn it is settles on the next island.
  void migrate(std::size_t island) {
    const std::size_t to = (island + 1) % kIslands;
    const std::string& case_name =
        config_.cases[static_cast<std::size_t>(visits_[island] / kTurnsBetweenMigrations) %
                      config_.cases.size()];
    const Member* best = best_member(island, case_name);
    if (best == nullptr) return;
    const auto& scores = best->tuning.arms().at(case_name).scores;
    const auto top =
        std::ranges::max_element(scores, {}, [](const auto& score) { return score.second; });
    const std::string id = make_candidate(sketches_[best->sketch], top->first).id;
    Member* settler = find_member(to, best->sketch);
    if (settler == nullptr) settler = &join(to, best->sketch);
    if (settler->tuning.arms().at(case_name).scores.contains(top->first)) return;
    settler->tuning.note_asked(top->first);
    tell_member(*settler, seen_.at(id), "", true);
  }

  int next_ = 0;
  int visits_[kIslands] = {};
};

class RandomSearch final : public Populations {
 public:
  explicit RandomSearch(const SearchConfig& config) : Populations(config, 1) {}

 private:
  std::optional<Candidate> choose() override {
    while (Member* any = any_member(0))
      if (const auto drawn = any->tuning.suggest_random()) return note(*any, drawn->knobs, "");
    return std::nullopt;
  }
};

template <typename Kind>
std::unique_ptr<Strategy> with_opening(const SearchConfig& config, std::vector<Sketch> opening) {
  auto strategy = std::make_unique<Kind>(config);
  for (Sketch& sketch : opening) strategy->add(std::move(sketch));
  return strategy;
}

}  // namespace

std::unique_ptr<Strategy> make_beam(const SearchConfig& config, std::vector<Sketch> opening) {
  return std::make_unique<BeamStrategy>(config, std::move(opening));
}

std::unique_ptr<Strategy> make_greedy(const SearchConfig& config, std::vector<Sketch> opening) {
  return with_opening<Greedy>(config, std::move(opening));
}

std::unique_ptr<Strategy> make_islands(const SearchConfig& config, std::vector<Sketch> opening) {
  return with_opening<Islands>(config, std::move(opening));
}

std::unique_ptr<Strategy> make_random(const SearchConfig& config, std::vector<Sketch> opening) {
  return with_opening<RandomSearch>(config, std::move(opening));
}

}  // namespace kbeam
