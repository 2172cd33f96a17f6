// One sketch and what is known of its settings: a local search for every regime and a model of all
// of them, over one set of tried settings, because each evaluation shows all regimes. Does not
// choose between sketches or regimes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "search/search.h"
#include "search/setting_model.h"
#include "search/setting_sampler.h"
#include "search/tuner.h"

namespace kbeam {

// How the tuning of one regime goes.
struct Arm {
  std::map<KnobValues, double> scores;
  double best = 0;  // 0: nothing accepted
  int aimed = 0;    // asks meant for this regime
  int dry = 0;      // of those, told since the last gain
};

// Nothing when nothing was accepted.
std::optional<KnobValues> best_setting(const Arm& arm);

struct Suggestion {
  KnobValues knobs;
  std::string strategy;
  std::optional<KnobValues> parent;  // the setting it varies
};

// What the model expects most of.
struct Promise {
  KnobValues knobs;
  double gain = 0;        // of the sum over the regimes of log speed-up
  std::string case_name;  // the regime that gains most
};

class SketchTuning {
 public:
  SketchTuning(Sketch sketch, const std::vector<std::string>& cases, std::uint64_t seed);

  const Sketch& sketch() const { return sketch_; }
  const std::map<std::string, Arm>& arms() const { return arms_; }
  KnobValues defaults() const { return space_.defaults(); }
  int asked() const { return asked_; }
  int told() const { return told_; }
  int accepted() const { return accepted_; }
  bool exhausted() const { return exhausted_; }

  // Each marks its setting as asked; nothing means that no setting is left, and the sketch is then
  // exhausted.
  std::optional<Suggestion> suggest_default();  // a random setting when the default is not allowed
  std::optional<Suggestion> suggest_random();
  std::optional<Suggestion> suggest_for(const std::string& case_name);
  Suggestion suggest_promised(const Promise& promise);
  // The best setting of this regime with the knobs that `theirs` has too set as there, where this
  // sketch knows the choice. Nothing when that setting was asked for, or is not allowed.
  std::optional<Suggestion> suggest_borrowed(const std::string& case_name,
                                             const KnobValues& theirs);

  // The setting that is expected to bring most beyond what these regimes have. Nothing before
  // enough settings worked, or when none is left.
  std::optional<Promise> promise(const std::map<std::string, double>& to_beat);

  // A setting that came from elsewhere counts as asked.
  void note_asked(const KnobValues& knobs);
  // Nothing is to be tuned from it.
  void close() { exhausted_ = true; }

  struct Outcome {
    KnobValues knobs;
    bool accepted = false;
    std::map<std::string, double> speedup;
    std::string aim;    // the regime it was meant for; empty: all
    bool first = true;  // false: replaces an earlier outcome of this setting
  };
  // True when some regime's best rose by more than noise.
  bool tell(const Outcome& outcome);

  // A confirmation knows better than a screen.
  void correct(const KnobValues& knobs, const std::string& case_name, double speedup);

 private:
  Suggestion taken(KnobValues knobs, std::string strategy, std::optional<KnobValues> parent);
  void tell_model(const KnobValues& knobs, bool accepted,
                  const std::map<std::string, double>& speedup);
  bool tell_arm(const std::string& case_name, const KnobValues& knobs, std::optional<double> score);

  Sketch sketch_;
  KnobSpace space_;
  SettingSampler sampler_;  // takes what was asked
  SettingModel model_;
  std::map<std::string, std::unique_ptr<Tuner>> tuners_;
  std::map<std::string, Arm> arms_;
  int asked_ = 0;
  int told_ = 0;
  int accepted_ = 0;
  bool exhausted_ = false;
};

}  // namespace kbeam
