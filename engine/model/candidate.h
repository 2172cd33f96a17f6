// Idea, Candidate and Artifact: a sentence, its code, and what the compiler made of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/verdict.h"

namespace kbeam {

// One sentence on what should be faster and why.
struct Idea {
  std::string id;        // short hash of the content
  std::string family;    // the structural line it belongs to
  std::string category;  // memory layout, blocking, parallelism, instruction choice, algorithm, ...
  std::string text;
  std::string expected;              // the prediction, in the proposer's words
  std::vector<std::string> parents;  // idea ids
  std::string source;                // builtin, manual, llm:..., agent:...
};

// Knob values by name, as the compiler sees them. A knob that is absent keeps its default.
using KnobValues = std::map<std::string, std::string>;

// KBEAM_KNOB as read from source text.
struct Knob {
  std::string name;
  std::string type;
  std::string fallback;
  std::vector<std::string> choices;  // the default is always among them
};

// KBEAM_REQUIRE as read from source text.
struct KnobConstraint {
  std::string condition;
  std::string sentence;
};

// One source with one knob setting, and the values of the regime axis that it serves.
struct Row {
  std::string source;       // the whole text of the .cpp
  std::string source_name;  // "blocked_wy.cpp", for people
  KnobValues knobs;
  std::int64_t axis_least = 0;  // of Problem::regime_axis
  std::int64_t axis_most = INT64_MAX;
};

// What is built, checked and measured as one thing. A plain candidate has one row that serves every
// shape; a portfolio has one row a regime. Row choice is trusted data, not candidate code.
struct Candidate {
  std::string id;  // short hash over the rows
  std::string idea_id;
  std::string family;  // "portfolio" for a portfolio
  std::string parent;  // candidate id, or empty
  std::string origin;  // which proposer and strategy: "builtin/random", "builtin/local", "manual"
  std::vector<Row> rows;

  const Row& row_for(std::int64_t axis_value) const;
  std::size_t row_index_for(std::int64_t axis_value) const;
  // The rows in the order in which they are asked whether they support a shape of this value: its
  // own, those of larger values, which take what is large in another axis, then the others.
  std::vector<std::size_t> rows_to_ask(std::int64_t axis_value) const;
};
std::string candidate_id(const Candidate& candidate);
std::string describe_knobs(const KnobValues& knobs);  // "kPanel=32 kWidth=16"

// What one CUDA kernel takes, as the compiler reported it.
struct KernelResources {
  int registers = 0;  // of a thread
  std::int64_t static_shared_bytes = 0;
  std::int64_t spill_bytes = 0;  // stored and loaded again, of a thread
  std::int64_t stack_bytes = 0;
  int max_threads = 1024;  // of a block
};

// What the compiler made of one row.
struct Artifact {
  Verdict verdict = Verdict::build_failed;  // accepted: `module` can be loaded
  std::string log;                          // the compiler's words, bounded
  std::string reason;                       // one sentence when not accepted
  std::filesystem::path module;             // the shared object in the cache
  std::string key;                          // content address of all inputs of the build
  std::string object_hash;  // of the machine code: equal for candidates that differ only in text
  double build_s = 0;
  bool from_cache = false;
  std::map<std::string, KernelResources> kernels;  // of a .cu, by mangled name
};

}  // namespace kbeam
