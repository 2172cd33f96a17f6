#include "search/beam.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kbeam {
namespace {

constexpr double kNearChampion = 0.95;  // exploit from here on
constexpr double kNearMiss = 1 / 1.3;   // near_miss from here on
constexpr double kNearMissShare =
    1.0 / 3;                           // of the reserved evaluations, where both roles are there
constexpr double kMostCredit = 2;      // a debt from long ago is not paid in a burst
constexpr double kOneSlot = 1 - 1e-9;  // credits are sums of fractions

// Successive halving: the more evaluations a family had, the closer it must have come on some
// regime.
double reach_after(int evaluations, int trials) {
  if (evaluations < 2 * trials) return 0.6;
  if (evaluations < 4 * trials) return 0.68;
  return kNearMiss;
}

bool is_little(Verdict verdict) {
  return verdict == Verdict::wrong_value || verdict == Verdict::not_finite ||
         verdict == Verdict::failed_private || verdict == Verdict::not_repeatable ||
         verdict == Verdict::too_noisy;
}

bool wrong_by_little(const BeamFamily& family) {
  return !family.failures.empty() &&
         std::all_of(family.failures.begin(), family.failures.end(),
                     [](const auto& failure) { return is_little(failure.first); });
}

std::string list_failures(const BeamFamily& family) {
  std::string list;
  for (const auto& [verdict, count] : family.failures)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, to_string(verdict));
  return list;
}

}  // namespace

double closeness(const FamilyState& family, const Standings& standings) {
  double closest = 0;
  for (const auto& [case_name, speedup] : family.best_per_case) {
    const auto standing = standings.find(case_name);
    if (standing == standings.end() || standing->second.speedup <= 0) continue;
    closest = std::max(closest, speedup / standing->second.speedup);
  }
  return closest;
}

BeamFamily& Beam::family(const std::string& name) {
  const auto found = std::find_if(families_.begin(), families_.end(),
                                  [&](const BeamFamily& f) { return f.state.name == name; });
  if (found != families_.end()) return *found;
  families_.emplace_back().state.name = name;
  return families_.back();
}

const BeamFamily* Beam::find(const std::string& name) const {
  const auto found = std::find_if(families_.begin(), families_.end(),
                                  [&](const BeamFamily& f) { return f.state.name == name; });
  return found == families_.end() ? nullptr : &*found;
}

bool Beam::can_ask(const BeamFamily& family) const {
  if (family.state.retired || family.exhausted) return false;
  const bool nothing_accepted = family.state.accepted == 0 && !family.never_judged();
  return !nothing_accepted ||
         family.state.evaluations + family.in_flight < config_.trials_when_wrong;
}

int Beam::count_available(Role role) const {
  return static_cast<int>(std::count_if(
      families_.begin(), families_.end(),
      [&](const BeamFamily& family) { return can_ask(family) && family.state.role == role; }));
}

int Beam::count_live() const {
  return static_cast<int>(std::count_if(families_.begin(), families_.end(),
                                        [](const BeamFamily& f) { return !f.state.retired; }));
}

// A protected family takes no place, so that none is retired before those beside it were judged.
int Beam::count_places_taken() const {
  return static_cast<int>(
      std::count_if(families_.begin(), families_.end(), [&](const BeamFamily& family) {
        const FamilyState& state = family.state;
        return !state.retired && state.accepted > 0 &&
               (state.role == Role::exploit || judged(family));
      }));
}

// Young families together get a third of what an equal split would give them, where that is more
// than the least share: a campaign of minutes has some forty evaluations.
double Beam::reserved_share() const {
  const double young = count_available(Role::structural);
  return std::max(config_.structural_share, young / 3 / std::max(1, count_live()));
}

Role Beam::reserved_role() const {
  if (count_available(Role::near_miss) == 0) return Role::structural;
  if (count_available(Role::structural) == 0) return Role::near_miss;
  return near_miss_credit_ + kNearMissShare > kOneSlot ? Role::near_miss : Role::structural;
}

std::optional<BeamSlot> Beam::choose_slot() {
  const int exploit = count_available(Role::exploit);
  const int reserved = count_available(Role::structural) + count_available(Role::near_miss);
  if (exploit + reserved == 0) {
    if (!revive()) return std::nullopt;
    return choose_slot();
  }
  if (config_.random_choice) return BeamSlot{Role::structural, true, "random choice"};
  if (stagnating() && stagnant_asks_ % 4 == 3)
    return BeamSlot{
        Role::structural, true,
        fmt::format("{} evaluations without a new champion: random restart", since_champion_)};
  if (stagnating() && stagnant_asks_ % 4 == 1 && reserved > 0)
    return BeamSlot{reserved_role(), false,
                    fmt::format("{} evaluations without a new champion", since_champion_)};
  if (reserved > 0 && (exploit == 0 || reserved_credit_ + reserved_share() > kOneSlot))
    return BeamSlot{reserved_role(), false, "reserved"};
  return BeamSlot{Role::exploit, false, "expected gain"};
}

void Beam::spend(const BeamSlot& slot) {
  stagnant_asks_ = stagnating() ? stagnant_asks_ + 1 : 0;
  const bool near_miss_waits = count_available(Role::near_miss) > 0;
  const bool reserved_waits = near_miss_waits || count_available(Role::structural) > 0;
  if (slot.role == Role::exploit) {
    if (reserved_waits)
      reserved_credit_ = std::min(kMostCredit, reserved_credit_ + reserved_share());
    return;
  }
  reserved_credit_ = std::max(0.0, reserved_credit_ + reserved_share() - 1);
  if (slot.role == Role::near_miss)
    near_miss_credit_ = std::max(0.0, near_miss_credit_ + kNearMissShare - 1);
  else if (near_miss_waits)
    near_miss_credit_ = std::min(kMostCredit, near_miss_credit_ + kNearMissShare);
}

bool Beam::judged(const BeamFamily& family) const {
  return family.exhausted || family.state.evaluations >= config_.trials_before_judgement;
}

void Beam::judge(const Standings& standings) {
  retire_wrong();
  for (BeamFamily& family : families_) {
    // A setting that was in flight when its family was given up may have worked.
    if (family.state.retired && family.never_worked && !family.dropped && family.state.accepted > 0)
      bring_back(family, "a setting that was still being evaluated was accepted");
    if (!family.state.retired) assign_role(family, standings);
  }
  if (!config_.random_choice) retire_slow(standings);
}

void Beam::assign_role(BeamFamily& family, const Standings& standings) const {
  const auto holds = [&](const auto& standing) {
    return standing.second.family == family.state.name;
  };
  if (family.state.accepted == 0) {
    family.state.role = wrong_by_little(family) ? Role::near_miss : Role::structural;
  } else if (closeness(family.state, standings) >= kNearChampion ||
             std::any_of(standings.begin(), standings.end(), holds)) {
    family.state.role = Role::exploit;
  } else {
    family.state.role = judged(family) ? Role::near_miss : Role::structural;
  }
}

void Beam::retire_wrong() {
  for (BeamFamily& family : families_) {
    const bool enough = family.exhausted || family.state.evaluations >= config_.trials_when_wrong;
    if (family.state.retired || family.never_judged() || family.state.accepted > 0 ||
        family.in_flight > 0)
      continue;
    if (family.state.evaluations == 0 || !enough) continue;
    retire(family, fmt::format("none of {} settings was accepted: {}", family.state.evaluations,
                               list_failures(family)));
  }
}

void Beam::retire_slow(const Standings& standings) {
  while (count_places_taken() > config_.beam) {
    BeamFamily* slowest = nullptr;
    for (BeamFamily& family : families_) {
      const FamilyState& state = family.state;
      if (state.retired || family.never_judged() || state.accepted == 0 ||
          state.role == Role::exploit)
        continue;
      if (!judged(family)) continue;
      const double reach = reach_after(state.evaluations, config_.trials_before_judgement);
      if (closeness(state, standings) >= reach) continue;
      if (!slowest || closeness(state, standings) < closeness(slowest->state, standings))
        slowest = &family;
    }
    if (!slowest) return;
    retire(*slowest, fmt::format("after {} evaluations at most {:.2f} of the best on any case, "
                                 "with {} judged families for {} places",
                                 slowest->state.evaluations, closeness(slowest->state, standings),
                                 count_live(), config_.beam));
  }
}

void Beam::retire(BeamFamily& family, std::string why) {
  notices_.push_back({"retired family " + family.state.name, family.state.name, why});
  family.state.retired = true;
  family.state.retired_why = std::move(why);
}

void Beam::drop(BeamFamily& family, const std::string& why) {
  family.dropped = true;
  family.is_protected = false;
  family.state.retired = true;
  family.state.retired_why = why;
  notices_.push_back({"dropped family " + family.state.name, family.state.name, why});
}

void Beam::protect(BeamFamily& family, const std::string& why) {
  family.dropped = false;
  family.is_protected = true;
  if (family.state.retired) bring_back(family, why);
  notices_.push_back({"protected family " + family.state.name, family.state.name, why});
}

// The retired family that came furthest, and of those that never worked the first.
bool Beam::revive() {
  BeamFamily* furthest = nullptr;
  for (BeamFamily& family : families_) {
    if (family.drained || family.revived || family.dropped) continue;
    if (!furthest || family.state.best_speedup > furthest->state.best_speedup) furthest = &family;
  }
  if (!furthest) return false;
  furthest->revived = true;
  furthest->exhausted = false;
  bring_back(*furthest, "no other family has settings left");
  return true;
}

void Beam::bring_back(BeamFamily& family, const std::string& why) {
  family.state.retired = false;
  family.state.retired_why.clear();
  family.never_worked = false;
  notices_.push_back({"brought back family " + family.state.name, family.state.name, why});
}

}  // namespace kbeam
