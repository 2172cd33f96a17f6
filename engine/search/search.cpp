#include "search/search.h"

#include <fmt/format.h>
#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/entropy.h"
#include "search/beam.h"
#include "search/champion_board.h"
#include "search/lending.h"
#include "search/sketch_tuning.h"
#include "search/target_choice.h"

namespace kbeam {
namespace {

constexpr std::size_t kNoSketch = static_cast<std::size_t>(-1);

struct Record {
  Proposal proposal;
  std::size_t sketch = kNoSketch;
  KnobValues knobs;
  bool in_flight = true;
  bool told = false;
  Verdict verdict = Verdict::engine_failed;
  std::map<std::string, double> speedup;  // as screened, corrected by confirmations
  double mean = 0;  // geometric, over the cases; 0 unless all of them were timed
};

std::optional<Suggestion> suggest(SketchTuning& tuning, const Target& target) {
  if (target.promise) return tuning.suggest_promised(*target.promise);
  if (target.case_name.empty()) return tuning.suggest_random();
  return tuning.suggest_for(target.case_name);
}

class BeamSearch final : public Search {
 public:
  BeamSearch(SearchConfig config, std::vector<Sketch> sketches)
      : config_(std::move(config)), beam_(config_), random_(derive_seed(config_.seed, "choices")) {
    for (Sketch& sketch : sketches) add(std::move(sketch));
    put_one_of_each_family_first();
    opening_sketches_ = sketches_.size();
  }

  std::optional<Proposal> ask() override {
    if (lookahead_.empty()) return propose();
    const std::string next = lookahead_.front();
    lookahead_.pop_front();
    return find_record(next)->proposal;
  }

  void tell(const Observation& observation) override;
  void add(Sketch sketch) override { add_sketch(std::move(sketch)); }
  void absorb(const Candidate& candidate, const Observation& observation) override;

  std::vector<Challenge> challenges() override;
  std::vector<Challenge> waiting_challenges() const override;
  void set_delta(const std::string& case_name, double delta) override {
    deltas_[case_name] = delta;
  }
  void crown(const Champion& champion) override;
  void refuse(const std::string& case_name, const std::string& candidate_id,
              const std::string& why) override;

  bool drop(const std::string& family, const std::string& why) override;
  bool protect(const std::string& family, const std::string& why) override;

  std::vector<Notice> notices() override { return beam_.take_notices(); }
  std::vector<FamilyState> families() const override;
  std::vector<Champion> champions() const override { return board_.in_order(config_.cases); }
  std::optional<Candidate> find(const std::string& candidate_id) const override;

 private:
  Record* find_record(const std::string& id);
  const Record* find_record(const std::string& id) const;
  std::size_t add_sketch(Sketch sketch);
  std::size_t find_sketch(const std::string& source) const;
  void put_one_of_each_family_first();
  bool opening() const;
  bool is_dropped(std::size_t sketch) const {
    const BeamFamily* const family = beam_.find(family_of(sketch));
    return family != nullptr && family->dropped;
  }
  const std::string& family_of(std::size_t sketch) const {
    return sketches_[sketch].sketch().idea.family;
  }

  std::optional<Proposal> propose();
  std::optional<Proposal> propose_untried();
  std::optional<Proposal> propose_in(const BeamSlot& slot);
  Proposal make_proposal(std::size_t sketch, const Suggestion& suggestion) const;
  Proposal register_proposal(Proposal proposal, std::size_t sketch, const KnobValues& knobs);
  void update_open(const std::string& family_name);

  void look_ahead();
  void absorb_foreign(const Candidate& candidate);
  void drop_lookahead_of(std::size_t sketch, const KnobValues& knobs);
  void update_family(const Record& record, Verdict before, bool first, bool gained);
  void refresh_best(FamilyState& state) const;
  double best_screened(const std::string& case_name) const;
  double speedup_to_beat(const std::string& case_name) const;
  Standings standings() const;
  const Record* best_challenger(const std::string& case_name) const;
  void correct(const std::string& candidate_id, const std::string& case_name, double speedup);
  double geometric_mean(const Record& record) const;

  SearchConfig config_;
  Beam beam_;
  Random random_;
  std::deque<SketchTuning> sketches_;
  std::set<std::string> known_sources_;       // normalised
  std::deque<std::size_t> untried_;           // sketches whose default was not proposed
  std::size_t opening_sketches_ = 0;          // those that make() was given
  std::deque<Record> records_;                // in the order of the proposals
  std::map<std::string, std::size_t> index_;  // candidate id -> record
  std::deque<std::string> lookahead_;         // proposed while absorbing, not asked for yet
  ChampionBoard board_;
  std::map<std::string, double> deltas_;  // by case
  bool models_turn_ = false;
};

// ---- sketches

std::size_t BeamSearch::add_sketch(Sketch sketch) {
  const std::string key =
      sketch.normalised_source.empty() ? sketch.source : sketch.normalised_source;
  if (!known_sources_.insert(key).second) return find_sketch(sketch.source);
  BeamFamily& family = beam_.family(sketch.idea.family);
  if (family.state.text.empty()) family.state.text = sketch.idea.text;
  const std::uint64_t seed =
      derive_seed(config_.seed, sketch.idea.family + " " + sketch.idea.id, sketches_.size());
  sketches_.emplace_back(std::move(sketch), config_.cases, seed);
  untried_.push_back(sketches_.size() - 1);
  update_open(family_of(sketches_.size() - 1));
  return sketches_.size() - 1;
}

std::size_t BeamSearch::find_sketch(const std::string& source) const {
  for (std::size_t i = 0; i < sketches_.size(); ++i)
    if (sketches_[i].sketch().source == source) return i;
  return kNoSketch;
}

void BeamSearch::put_one_of_each_family_first() {
  std::set<std::string> seen;
  std::deque<std::size_t> first, later;
  for (const std::size_t sketch : untried_)
    (seen.insert(family_of(sketch)).second ? first : later).push_back(sketch);
  first.insert(first.end(), later.begin(), later.end());
  untried_ = std::move(first);
}

bool BeamSearch::opening() const {
  return std::any_of(untried_.begin(), untried_.end(), [&](std::size_t sketch) {
    return sketch < opening_sketches_ && !is_dropped(sketch);
  });
}

void BeamSearch::update_open(const std::string& family_name) {
  BeamFamily& family = beam_.family(family_name);
  family.drained = true;
  family.exhausted = true;
  for (std::size_t i = 0; i < sketches_.size(); ++i) {
    if (family_of(i) != family_name) continue;
    family.drained = family.drained && sketches_[i].exhausted();
    family.exhausted = family.exhausted && is_closed(sketches_[i], config_);
  }
  if (family.never_judged()) family.exhausted = family.drained;
}

// ---- asking

std::optional<Proposal> BeamSearch::propose() {
  if (auto proposal = propose_untried()) return proposal;
  // A slot that finds no setting closes a sketch, so this ends.
  while (const auto slot = beam_.choose_slot()) {
    if (auto proposal = propose_in(*slot)) {
      beam_.spend(*slot);
      return proposal;
    }
  }
  return std::nullopt;
}

std::optional<Proposal> BeamSearch::propose_untried() {
  for (;;) {
    const auto next = std::find_if(untried_.begin(), untried_.end(),
                                   [&](std::size_t sketch) { return !is_dropped(sketch); });
    if (next == untried_.end()) return std::nullopt;
    const std::size_t sketch = *next;
    untried_.erase(next);
    const auto suggestion = sketches_[sketch].suggest_default();
    if (!suggestion) {
      update_open(family_of(sketch));
      continue;
    }
    Proposal proposal = make_proposal(sketch, *suggestion);
    proposal.role = Role::structural;
    proposal.why = fmt::format("first look at family {}", family_of(sketch));
    return register_proposal(std::move(proposal), sketch, suggestion->knobs);
  }
}

std::optional<Proposal> BeamSearch::propose_in(const BeamSlot& slot) {
  const Standings now = standings();
  const SearchView view{config_, beam_, sketches_, now, models_turn_};
  auto target = choose_target(slot, view, random_);
  CHECK(target.has_value(), "a slot is given only where some sketch can be asked");
  SketchTuning& tuning = sketches_[target->sketch];
  std::optional<Suggestion> suggestion;
  if (auto loan = slot.restart ? std::nullopt : borrow(target->sketch, view)) {
    target = Target{target->sketch, loan->case_name, {}};
    suggestion = std::move(loan->suggestion);
  } else {
    suggestion = suggest(tuning, *target);
    if (!target->case_name.empty()) models_turn_ = !models_turn_;
  }
  if (!suggestion) {
    update_open(family_of(target->sketch));
    return std::nullopt;
  }
  Proposal proposal = make_proposal(target->sketch, *suggestion);
  proposal.role = slot.role;
  if (!target->case_name.empty()) proposal.aims = {target->case_name};
  proposal.why = explain(slot, *target, *suggestion, view);
  return register_proposal(std::move(proposal), target->sketch, suggestion->knobs);
}

Proposal BeamSearch::make_proposal(std::size_t sketch, const Suggestion& suggestion) const {
  const Sketch& from = sketches_[sketch].sketch();
  const auto candidate_with = [&](const KnobValues& knobs) {
    Candidate candidate;
    candidate.idea_id = from.idea.id;
    candidate.family = from.idea.family;
    candidate.rows.push_back(
        {.source = from.source, .source_name = from.source_name, .knobs = knobs});
    candidate.id = candidate_id(candidate);
    return candidate;
  };
  Proposal proposal;
  proposal.candidate = candidate_with(suggestion.knobs);
  proposal.candidate.origin = from.idea.source + "/" + suggestion.strategy;
  if (suggestion.parent) proposal.candidate.parent = candidate_with(*suggestion.parent).id;
  proposal.strategy = suggestion.strategy;
  return proposal;
}

Proposal BeamSearch::register_proposal(Proposal proposal, std::size_t sketch,
                                       const KnobValues& knobs) {
  const std::string id = proposal.candidate.id;
  if (sketch != kNoSketch) ++beam_.family(family_of(sketch)).in_flight;
  index_[id] = records_.size();
  Record& made = records_.emplace_back();
  made.proposal = std::move(proposal);
  made.sketch = sketch;
  made.knobs = knobs;
  return made.proposal;
}

// ---- being told

void BeamSearch::tell(const Observation& observation) {
  Record* found = find_record(observation.candidate_id);
  if (!found) return;
  Record& told = *found;
  if (std::exchange(told.in_flight, false) && told.sketch != kNoSketch)
    --beam_.family(family_of(told.sketch)).in_flight;
  if (observation.verdict == Verdict::engine_failed) return;
  const bool first = !std::exchange(told.told, true);
  const Verdict before = std::exchange(told.verdict, observation.verdict);
  const bool accepted = observation.verdict == Verdict::accepted;
  told.speedup = accepted ? observation.speedup : std::map<std::string, double>{};
  told.mean = geometric_mean(told);
  if (first) beam_.count_evaluation();
  if (told.sketch == kNoSketch) return;

  const auto& aims = told.proposal.aims;
  std::map<std::string, double> to_beat;
  for (const std::string& case_name : config_.cases) to_beat[case_name] = best_screened(case_name);
  const bool gained = sketches_[told.sketch].tell({.knobs = told.knobs,
                                                   .accepted = accepted,
                                                   .speedup = told.speedup,
                                                   .aim = aims.empty() ? "" : aims.front(),
                                                   .first = first});
  update_family(told, before, first, gained);
  update_open(family_of(told.sketch));
  // Before the first confirmation of a case the best screen stands in for its champion.
  for (const auto& [case_name, speedup] : told.speedup)
    if (!board_.find(case_name) && speedup > to_beat[case_name] * (1 + config_.challenge_margin))
      beam_.note_champion();
  beam_.judge(standings());
}

void BeamSearch::update_family(const Record& record, Verdict before, bool first, bool gained) {
  BeamFamily& family = beam_.family(family_of(record.sketch));
  if (first) {
    ++family.state.evaluations;
  } else if (before == Verdict::accepted) {
    --family.state.accepted;
  } else if (--family.failures[before] == 0) {
    family.failures.erase(before);
  }
  if (record.verdict == Verdict::accepted)
    ++family.state.accepted;
  else
    ++family.failures[record.verdict];
  if (gained)
    family.state.since_gain = 0;
  else if (first)
    ++family.state.since_gain;
  refresh_best(family.state);
}

void BeamSearch::refresh_best(FamilyState& state) const {
  state.best_per_case.clear();
  for (std::size_t i = 0; i < sketches_.size(); ++i) {
    if (family_of(i) != state.name) continue;
    for (const auto& [case_name, arm] : sketches_[i].arms())
      if (arm.best > 0)
        state.best_per_case[case_name] = std::max(state.best_per_case[case_name], arm.best);
  }
  state.best_candidate.clear();
  state.best_speedup = 0;
  for (const Record& record : records_) {
    if (record.mean <= state.best_speedup || record.sketch == kNoSketch ||
        family_of(record.sketch) != state.name)
      continue;
    state.best_speedup = record.mean;
    state.best_candidate = record.proposal.candidate.id;
  }
}

double BeamSearch::geometric_mean(const Record& record) const {
  double sum = 0;
  for (const std::string& case_name : config_.cases) {
    const auto speedup = record.speedup.find(case_name);
    if (speedup == record.speedup.end() || speedup->second <= 0) return 0;
    sum += std::log(speedup->second);
  }
  return config_.cases.empty() ? 0 : std::exp(sum / static_cast<double>(config_.cases.size()));
}

void BeamSearch::absorb(const Candidate& candidate, const Observation& observation) {
  const bool ahead =
      std::find(lookahead_.begin(), lookahead_.end(), candidate.id) != lookahead_.end();
  if (ahead || !index_.contains(candidate.id)) {
    look_ahead();
    if (!index_.contains(candidate.id)) absorb_foreign(candidate);
    std::erase(lookahead_, candidate.id);
  }
  Observation known = observation;
  known.candidate_id = candidate.id;
  tell(known);
}

// What the recorded run had under way when this evaluation ended.
void BeamSearch::look_ahead() {
  while (static_cast<int>(lookahead_.size()) < config_.in_flight) {
    const auto proposal = propose();
    if (!proposal) return;
    lookahead_.push_back(proposal->candidate.id);
  }
}

// A setting of a known sketch, or a source of its own that nothing is tuned from. A portfolio
// belongs to no family.
void BeamSearch::absorb_foreign(const Candidate& candidate) {
  Proposal proposal;
  proposal.candidate = candidate;
  proposal.strategy = "absorbed";
  if (candidate.rows.size() != 1) {
    register_proposal(std::move(proposal), kNoSketch, {});
    return;
  }
  const Row& row = candidate.rows.front();
  std::size_t sketch = find_sketch(row.source);
  if (sketch == kNoSketch) {
    Sketch made;
    made.idea.id = candidate.idea_id;
    made.idea.family = candidate.family;
    made.source = row.source;
    made.source_name = row.source_name;
    sketch = add_sketch(std::move(made));
    std::erase(untried_, sketch);
    sketches_[sketch].close();
    update_open(candidate.family);
  }
  KnobValues knobs = sketches_[sketch].defaults();
  for (const auto& [name, value] : row.knobs) knobs[name] = value;
  drop_lookahead_of(sketch, knobs);
  if (knobs == sketches_[sketch].defaults()) std::erase(untried_, sketch);
  sketches_[sketch].note_asked(knobs);
  register_proposal(std::move(proposal), sketch, knobs);
}

// The same setting under another id, because the absorbed candidate leaves out knobs that keep
// their defaults.
void BeamSearch::drop_lookahead_of(std::size_t sketch, const KnobValues& knobs) {
  const auto same = std::find_if(lookahead_.begin(), lookahead_.end(), [&](const std::string& id) {
    const Record& record = *find_record(id);
    return record.sketch == sketch && record.knobs == knobs;
  });
  if (same == lookahead_.end()) return;
  --beam_.family(family_of(sketch)).in_flight;
  find_record(*same)->sketch = kNoSketch;
  index_.erase(*same);
  lookahead_.erase(same);
}

// ---- champions

double BeamSearch::best_screened(const std::string& case_name) const {
  double best = 0;
  for (const SketchTuning& sketch : sketches_) {
    const auto arm = sketch.arms().find(case_name);
    if (arm != sketch.arms().end()) best = std::max(best, arm->second.best);
  }
  return best;
}

double BeamSearch::speedup_to_beat(const std::string& case_name) const {
  const Champion* champion = board_.find(case_name);
  return champion ? champion->speedup : best_screened(case_name);
}

Standings BeamSearch::standings() const {
  Standings standings;
  for (const std::string& case_name : config_.cases) {
    const Champion* champion = board_.find(case_name);
    standings[case_name] = {speedup_to_beat(case_name), champion ? champion->family : ""};
  }
  return standings;
}

const Record* BeamSearch::best_challenger(const std::string& case_name) const {
  const Champion* champion = board_.find(case_name);
  const auto delta = deltas_.find(case_name);
  const double margin =
      std::max(config_.challenge_margin, delta == deltas_.end() ? 0 : delta->second);
  double to_beat = champion ? champion->speedup * (1 + margin) : 0;
  const Record* best = nullptr;
  for (const Record& record : records_) {
    const auto speedup = record.speedup.find(case_name);
    const bool fit =
        record.sketch != kNoSketch && speedup != record.speedup.end() && speedup->second > to_beat;
    if (!fit || !board_.may_challenge(case_name, record.proposal.candidate.id)) continue;
    to_beat = speedup->second;
    best = &record;
  }
  return best;
}

std::vector<Search::Challenge> BeamSearch::waiting_challenges() const {
  std::vector<Challenge> found;
  if (opening()) return found;
  for (const std::string& case_name : config_.cases)
    if (const Record* best = best_challenger(case_name))
      found.push_back({case_name, best->proposal.candidate.id, best->speedup.at(case_name)});
  return found;
}

std::vector<Search::Challenge> BeamSearch::challenges() {
  std::vector<Challenge> found = waiting_challenges();
  for (const Challenge& challenge : found)
    board_.open_challenge(challenge.case_name, challenge.candidate_id);
  return found;
}

void BeamSearch::crown(const Champion& champion) {
  const bool changed = board_.crown(champion);
  correct(champion.candidate_id, champion.case_name, champion.speedup);
  if (changed) {
    beam_.note_champion();
    const Record* found = find_record(champion.candidate_id);
    if (found && found->sketch != kNoSketch)
      beam_.family(family_of(found->sketch)).state.since_gain = 0;
  }
  beam_.judge(standings());
}

void BeamSearch::refuse(const std::string& case_name, const std::string& candidate_id,
                        const std::string&) {
  board_.close_challenge(case_name, candidate_id);
  // It did not beat the champion, so its screen was too good: nothing climbs from luck.
  const Record* found = find_record(candidate_id);
  const Champion* champion = board_.find(case_name);
  if (!found || !champion) return;
  const auto speedup = found->speedup.find(case_name);
  if (speedup == found->speedup.end()) return;
  correct(candidate_id, case_name, std::min(speedup->second, champion->speedup));
  beam_.judge(standings());
}

void BeamSearch::correct(const std::string& candidate_id, const std::string& case_name,
                         double speedup) {
  Record* found = find_record(candidate_id);
  if (!found || found->sketch == kNoSketch) return;
  Record& record = *found;
  if (record.verdict != Verdict::accepted) return;
  record.speedup[case_name] = speedup;
  record.mean = geometric_mean(record);
  sketches_[record.sketch].correct(record.knobs, case_name, speedup);
  refresh_best(beam_.family(family_of(record.sketch)).state);
}

// ---- steering

bool BeamSearch::drop(const std::string& family, const std::string& why) {
  if (beam_.find(family) == nullptr) return false;
  beam_.drop(beam_.family(family), why);
  return true;
}

bool BeamSearch::protect(const std::string& family, const std::string& why) {
  if (beam_.find(family) == nullptr) return false;
  beam_.protect(beam_.family(family), why);
  update_open(family);
  return true;
}

// ---- what is known

Record* BeamSearch::find_record(const std::string& id) {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &records_[found->second];
}

const Record* BeamSearch::find_record(const std::string& id) const {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : &records_[found->second];
}

std::vector<FamilyState> BeamSearch::families() const {
  std::vector<FamilyState> states;
  for (const BeamFamily& family : beam_.families()) states.push_back(family.state);
  return states;
}

std::optional<Candidate> BeamSearch::find(const std::string& candidate_id) const {
  const Record* found = find_record(candidate_id);
  if (!found) return std::nullopt;
  return found->proposal.candidate;
}

}  // namespace

std::unique_ptr<Search> Search::make(SearchConfig config, std::vector<Sketch> sketches) {
  return std::make_unique<BeamSearch>(std::move(config), std::move(sketches));
}

}  // namespace kbeam
