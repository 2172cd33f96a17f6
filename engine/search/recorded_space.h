// A tuning problem whose answers are known: every setting of a knob space with its time or its
// failure. Read from the JSON of Kernel Tuner's cache files and of T4, written as the former, so
// that others' tuners can run on it too. Pure: texts, no files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/candidate.h"
#include "search/knob_space.h"

namespace kbeam {

struct RecordedSetting {
  KnobValues knobs;
  std::optional<double> time_ms;  // nothing: it failed
  std::string failure;            // why: a Verdict's word, or what the file says
};

struct SpaceRecord {
  std::string kernel;  // "matmul/packed_panels.cpp odd_379"
  std::string device;
  std::vector<Knob> knobs;  // with the default where the file knows one, else the first choice
  std::vector<RecordedSetting> settings;
};

// `name` is for the error: the file. A cache that its writer did not close is read as far as it
// goes; settings that occur again count as they were first.
Result<SpaceRecord> parse_space(const std::string& text, const std::string& name);

// As a Kernel Tuner cache. `details` gives fields of one setting beyond its time (raw samples), and
// `facts` those of the whole (problem, case, machine): both are kept and neither is read back.
std::string space_text(const SpaceRecord& record, const std::map<KnobValues, Json>& details,
                       const Json& facts);

class RecordedSpace {
 public:
  // CHECKs that there is a setting that did not fail: parse_space refuses the others.
  explicit RecordedSpace(SpaceRecord record);

  const SpaceRecord& record() const { return record_; }
  // Allows exactly the recorded settings. Its default is one of them, drawn: a tuner that is
  // compared with others must not know where a person would begin.
  KnobSpace space(std::uint64_t seed) const;
  std::optional<double> time_ms(const KnobValues& knobs) const;
  double best_ms() const { return best_ms_; }
  double median_ms() const { return median_ms_; }  // of those that work
  std::size_t failures() const { return failures_; }

 private:
  SpaceRecord record_;
  std::map<KnobValues, std::size_t> index_;
  double best_ms_ = 0;
  double median_ms_ = 0;
  std::size_t failures_ = 0;
};

}  // namespace kbeam
