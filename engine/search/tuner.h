// The inner search: knob settings of one sketch, by ask and tell. Any order, any number in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/candidate.h"
#include "search/knob_space.h"

namespace kbeam {

class Tuner {
 public:
  virtual ~Tuner() = default;
  virtual std::string name() const = 0;
  // Never the same setting twice, nor one that was told or excluded; nothing when none is left.
  virtual std::optional<KnobValues> ask() = 0;
  // Larger is better; failed settings are told as nothing. Takes settings that it never asked for,
  // and a second score of one setting, which replaces the first.
  virtual void tell(const KnobValues& values, std::optional<double> score) = 0;
  // Somebody else is trying it: do not ask for it.
  virtual void exclude(const KnobValues& values) = 0;
  // What the last ask was derived from; nothing for a random or default setting.
  virtual std::optional<KnobValues> parent() const = 0;
};

// Uniform over the allowed settings that are left.
std::unique_ptr<Tuner> make_random_tuner(const KnobSpace& space, std::uint64_t seed);

// Default first, a few random starts, then first improvement from the best: neighbours in one knob
// in random order, near ones first. A local optimum is left by changing several knobs of the best
// at once.
std::unique_ptr<Tuner> make_local_search_tuner(const KnobSpace& space, std::uint64_t seed);

// Default first, some random starts, then children of two of the best with a few knobs changed.
std::unique_ptr<Tuner> make_evolutionary_tuner(const KnobSpace& space, std::uint64_t seed);

// Default first, some random starts, then what a Gaussian process expects most of. An ask costs
// milliseconds, growing with the square of what was told.
std::unique_ptr<Tuner> make_model_tuner(const KnobSpace& space, std::uint64_t seed);

// The local search and the model by turns, over one set of told settings.
std::unique_ptr<Tuner> make_auto_tuner(const KnobSpace& space, std::uint64_t seed);

struct TunerStrategy {
  std::string_view name;
  std::string_view text;
  std::unique_ptr<Tuner> (*make)(const KnobSpace& space, std::uint64_t seed);
};
// Every strategy, the default first.
std::span<const TunerStrategy> tuner_strategies();

}  // namespace kbeam
