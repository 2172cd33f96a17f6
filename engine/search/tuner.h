// The inner search: knob settings of one sketch, by ask and tell. Any order, any number in flight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/candidate.h"

namespace kbeam {

// The settings that satisfy every constraint. A constraint that cannot be evaluated from knobs alone is left to
// the compiler.
class KnobSpace {
 public:
  KnobSpace(std::vector<Knob> knobs, std::vector<KnobConstraint> constraints);
  const std::vector<Knob>& knobs() const { return knobs_; }
  KnobValues defaults() const;
  bool allows(const KnobValues& values) const;
  std::int64_t size() const;  // before constraints
  // Settings that differ in one knob, next choices first.
  std::vector<KnobValues> neighbours(const KnobValues& values) const;

 private:
  std::vector<Knob> knobs_;
  std::vector<KnobConstraint> constraints_;
};

class Tuner {
 public:
  virtual ~Tuner() = default;
  virtual std::string name() const = 0;
  // Never the same setting twice; nothing when none is left.
  virtual std::optional<KnobValues> ask() = 0;
  // Larger is better; failed settings are told as nothing.
  virtual void tell(const KnobValues& values, std::optional<double> score) = 0;
};

std::unique_ptr<Tuner> make_random_tuner(const KnobSpace& space, std::uint64_t seed);
std::unique_ptr<Tuner> make_local_search_tuner(const KnobSpace& space, std::uint64_t seed);

}  // namespace kbeam
