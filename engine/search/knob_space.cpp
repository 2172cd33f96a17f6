#include "search/knob_space.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/expression.h"

namespace kbeam {
namespace {

// Constraints over at most this many combinations are evaluated once, at construction.
constexpr std::size_t kLargestTable = 4096;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::optional<std::int64_t> number_of(const std::string& value) {
  const auto number = evaluate_expression(value, {});
  if (!number.ok()) return std::nullopt;
  return *number;
}

Knob tidy(Knob knob) {
  std::vector<std::string> choices;
  if (std::find(knob.choices.begin(), knob.choices.end(), knob.fallback) == knob.choices.end())
    knob.choices.push_back(knob.fallback);
  for (const std::string& choice : knob.choices)
    if (std::find(choices.begin(), choices.end(), choice) == choices.end())
      choices.push_back(choice);
  const bool ordered = std::all_of(choices.begin(), choices.end(), [](const std::string& choice) {
    return number_of(choice).has_value();
  });
  if (ordered)
    std::stable_sort(
        choices.begin(), choices.end(),
        [](const std::string& a, const std::string& b) { return number_of(a) < number_of(b); });
  knob.choices = std::move(choices);
  return knob;
}

}  // namespace

KnobSpace::KnobSpace(std::vector<Knob> knobs, std::vector<KnobConstraint> constraints) {
  for (Knob& knob : knobs) {
    knobs_.push_back(tidy(std::move(knob)));
    std::vector<std::optional<std::int64_t>> numbers;
    for (const std::string& choice : knobs_.back().choices) numbers.push_back(number_of(choice));
    numbers_.push_back(std::move(numbers));
  }
  decided_at_.resize(knobs_.size());
  for (const KnobConstraint& constraint : constraints) add_constraint(constraint.condition);
}

void KnobSpace::add_constraint(const std::string& condition) {
  Constraint constraint{condition, {}, {}};
  for (const std::string& name : names_in_expression(condition)) {
    const auto knob =
        std::find_if(knobs_.begin(), knobs_.end(), [&](const Knob& k) { return k.name == name; });
    if (knob == knobs_.end()) return;  // only the compiler knows this name
    constraint.knobs.push_back(static_cast<int>(knob - knobs_.begin()));
  }
  if (constraint.knobs.empty()) return;  // the same for every setting
  std::sort(constraint.knobs.begin(), constraint.knobs.end());
  fill_answers(constraint);
  decided_at_[at(constraint.knobs.back())].push_back(static_cast<int>(constraints_.size()));
  constraints_.push_back(std::move(constraint));
}

void KnobSpace::fill_answers(Constraint& constraint) {
  std::size_t combinations = 1;
  for (const int knob : constraint.knobs) {
    combinations *= at(choices(knob));
    if (combinations > kLargestTable) return;
  }
  std::vector<std::uint8_t> answers(combinations);
  Setting setting(knobs_.size(), 0);
  for (std::size_t i = 0; i < combinations; ++i) {
    std::size_t rest = i;
    for (const int knob : constraint.knobs) {
      setting[at(knob)] = static_cast<int>(rest % at(choices(knob)));
      rest /= at(choices(knob));
    }
    answers[i] = evaluate(constraint, setting) ? 1 : 0;
  }
  constraint.answers = std::move(answers);
}

std::size_t KnobSpace::answer_index(const Constraint& constraint, const Setting& setting) const {
  std::size_t index = 0, stride = 1;
  for (const int knob : constraint.knobs) {
    index += stride * at(setting[at(knob)]);
    stride *= at(choices(knob));
  }
  return index;
}

bool KnobSpace::evaluate(const Constraint& constraint, const Setting& setting) const {
  std::map<std::string, std::int64_t> names;
  for (const int knob : constraint.knobs) {
    const auto& number = numbers_[at(knob)][at(setting[at(knob)])];
    if (!number) return true;
    names[knobs_[at(knob)].name] = *number;
  }
  const auto value = evaluate_expression(constraint.condition, names);
  return !value.ok() || *value != 0;
}

bool KnobSpace::holds(const Constraint& constraint, const Setting& setting) const {
  if (constraint.answers.empty()) return evaluate(constraint, setting);
  return constraint.answers[answer_index(constraint, setting)] != 0;
}

KnobValues KnobSpace::defaults() const {
  KnobValues values;
  for (const Knob& knob : knobs_) values[knob.name] = knob.fallback;
  return values;
}

std::int64_t KnobSpace::size() const {
  std::int64_t size = 1;
  for (const Knob& knob : knobs_)
    if (__builtin_mul_overflow(size, static_cast<std::int64_t>(knob.choices.size()), &size))
      return std::numeric_limits<std::int64_t>::max();
  return size;
}

bool KnobSpace::allows(const KnobValues& values) const {
  const auto setting = find_setting(values);
  return setting && allows(*setting);
}

void KnobSpace::restrict_to(std::vector<Setting> settings) {
  std::sort(settings.begin(), settings.end());
  settings.erase(std::unique(settings.begin(), settings.end()), settings.end());
  listed_ = std::make_shared<const std::vector<Setting>>(std::move(settings));
}

// Whether some listed setting begins with the first `knobs` choices of this one.
bool KnobSpace::is_listed(const Setting& setting, std::size_t knobs) const {
  const auto head = setting.begin() + static_cast<std::ptrdiff_t>(knobs);
  const auto found = std::lower_bound(
      listed_->begin(), listed_->end(), setting, [&](const Setting& listed, const Setting&) {
        return std::lexicographical_compare(listed.begin(), listed.end(), setting.begin(), head);
      });
  return found != listed_->end() && std::equal(setting.begin(), head, found->begin());
}

bool KnobSpace::allows(const Setting& setting) const {
  if (listed_) return is_listed(setting, setting.size());
  return std::all_of(constraints_.begin(), constraints_.end(),
                     [&](const Constraint& constraint) { return holds(constraint, setting); });
}

bool KnobSpace::allows_so_far(const Setting& setting, int assigned) const {
  if (listed_) return is_listed(setting, at(assigned) + 1);
  const std::vector<int>& decided = decided_at_[at(assigned)];
  return std::all_of(decided.begin(), decided.end(),
                     [&](int constraint) { return holds(constraints_[at(constraint)], setting); });
}

int KnobSpace::longest_knob() const {
  int longest = 0;
  for (const Knob& knob : knobs_)
    longest = std::max(longest, static_cast<int>(knob.choices.size()));
  return longest;
}

std::vector<Setting> KnobSpace::neighbours_at(const Setting& setting, int distance) const {
  std::vector<Setting> found;
  for (int knob = 0; knob < static_cast<int>(knobs_.size()); ++knob) {
    for (const int step : {-distance, distance}) {
      Setting neighbour = setting;
      int& choice = neighbour[at(knob)];
      choice += step;
      if (choice >= 0 && choice < choices(knob) && allows(neighbour)) found.push_back(neighbour);
    }
  }
  return found;
}

std::vector<KnobValues> KnobSpace::neighbours(const KnobValues& values) const {
  std::vector<KnobValues> found;
  const auto centre = find_setting(values);
  if (!centre) return found;
  for (int distance = 1; distance < longest_knob(); ++distance)
    for (const Setting& neighbour : neighbours_at(*centre, distance))
      found.push_back(values_of(neighbour));
  return found;
}

std::optional<Setting> KnobSpace::find_setting(const KnobValues& values) const {
  Setting setting;
  std::size_t named = 0;
  for (const Knob& knob : knobs_) {
    const auto value = values.find(knob.name);
    if (value != values.end()) ++named;
    const std::string& text = value != values.end() ? value->second : knob.fallback;
    const auto choice = std::find(knob.choices.begin(), knob.choices.end(), text);
    if (choice == knob.choices.end()) return std::nullopt;
    setting.push_back(static_cast<int>(choice - knob.choices.begin()));
  }
  if (named != values.size()) return std::nullopt;
  return setting;
}

KnobValues KnobSpace::values_of(const Setting& setting) const {
  KnobValues values;
  for (std::size_t i = 0; i < knobs_.size(); ++i)
    values[knobs_[i].name] = knobs_[i].choices[at(setting[i])];
  return values;
}

}  // namespace kbeam
