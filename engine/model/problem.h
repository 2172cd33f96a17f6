// Problem and Case: what must be computed and on which workloads, as problem.toml declares it.
// Plain data; reading and validating is engine/problem's job.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kbeam {

// Where candidates run. The empty list of targets in what follows means all of them.
inline constexpr std::string_view kTargets[] = {"cpu", "cuda"};
using Targets = std::vector<std::string>;

using AxisValues = std::map<std::string, std::int64_t>;

struct Axis {
  std::string name;
  std::int64_t least = 1;
  std::int64_t most = 1;
  std::string derived_from;  // "min(m, n)": computed from other axes; empty for a free axis
};

struct TensorSpec {
  std::string name;
  kbeam_role role = KBEAM_INPUT;
  kbeam_element_type type = KBEAM_F32;
  std::vector<std::string> shape;  // axis names; views, dims and strides follow this order
  std::vector<std::string>
      memory_order;  // the same axes, slowest first: {"batch","n","m"} is column-major m x n
};

struct FamilySpec {
  std::string name;
  std::string text;  // one sentence for people and proposers
};

struct GradeSpec {
  std::string name;
  std::string text;
};

enum class Pool { public_pool, private_pool, sealed_pool };

struct Case {
  std::string name;
  AxisValues axes;  // free and derived
  std::string family;
  Pool pool = Pool::public_pool;
  bool timed = false;  // timed cases carry the score; the others are only checked
  Targets targets;
};

// An honest implementation that everything is compared with, measured in the same run by the same
// rules. Every combination of its knobs is tried once a campaign; the fastest per case is the
// baseline.
struct BaselineSpec {
  std::string name;
  std::string text;
  std::filesystem::path source;
  std::vector<std::string> link;  // libraries, such as "openblas"; candidates may link nothing
  Targets targets;                // never empty: a .cpp is for the cpu, a .cu for cuda
};

// A line on the report's plots that is no candidate, such as SGEMM speed: the flops and bytes of
// the case divided by what a reference kernel reaches here.
struct CeilingSpec {
  std::string name;  // "sgemm"
  std::string text;
  std::filesystem::path source;
  std::vector<std::string> link;
  Targets targets;
};

struct Problem {
  std::string name;
  std::string title;
  std::string summary;
  std::filesystem::path folder;
  std::filesystem::path code;       // problem.cpp
  std::filesystem::path cuda_code;  // problem.cu; empty where the folder has none

  std::vector<Axis> axes;
  std::vector<TensorSpec> tensors;
  std::vector<FamilySpec> families;
  std::vector<GradeSpec> grades;  // the first is the default and the headline
  std::vector<Case> cases;        // public ones first, else in the order of the file
  std::vector<BaselineSpec> baselines;
  std::vector<CeilingSpec> ceilings;

  // The axis whose value picks a row of a portfolio; rows meet half way (geometrically) between
  // timed cases.
  std::string regime_axis;
  std::vector<std::string> compile_flags;  // beyond the engine's own, the same for everybody

  // Where the problem can be run: a public case is timed there, and for cuda the folder holds a .cu
  // file.
  Targets targets;

  std::string content_hash;  // over every file that decides a verdict
  // The same for one target: a change that another target alone can see leaves it as it was.
  std::map<std::string, std::string> target_hashes;

  const Case* find_case(const std::string& case_name) const;
  std::vector<Case> timed_cases() const;
};

bool serves(const Targets& targets, std::string_view target);
// The problem as one target sees it: its cases, baselines and ceilings, the families that its cases
// use, and its hash.
Problem for_target(const Problem& problem, std::string_view target);

// Views with dims and strides for one case, data pointers null: the order is that of
// Problem::tensors.
struct TensorShape {
  std::string name;
  kbeam_role role = KBEAM_INPUT;
  kbeam_element_type type = KBEAM_F32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
  std::int64_t elements() const;
  std::int64_t bytes() const;
};
std::vector<TensorShape> tensor_shapes(const Problem& problem, const AxisValues& axes);

}  // namespace kbeam
