// A long recording of paired times of one case, as a file: one line of JSON that says what was
// recorded, then every time in nanoseconds. Small enough to keep every sample. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/evaluation.h"

namespace kbeam {

struct PairTrace {
  std::string condition;  // what else the machine did: "idle"
  std::string problem;
  std::string case_name;
  std::map<std::string, std::string> facts;  // when, on what machine, which kernel
  PairedSamples samples;
};

std::string encode_trace(const PairTrace& trace);
// `name` is for the error: the file.
Result<PairTrace> decode_trace(std::string_view bytes, const std::string& name);

}  // namespace kbeam
