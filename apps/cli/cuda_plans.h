// A .cu built and planned for cases of its problem: what `kbeam plan` shows and `kbeam profile`
// explains. Runs nothing on a GPU.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "base/files.h"
#include "base/result.h"
#include "model/candidate.h"
#include "model/problem.h"
#include "target/cuda/planner.h"

namespace kbeam::cli {

struct PlannedCase {
  std::string title;  // the case, and for problem.cu which of its plans
  Case the_case;
  PlanRequest request;
  Planned planned;
};

struct PlannedFile {
  Home home;
  Problem problem;
  std::filesystem::path module;
  std::map<std::string, KernelResources> kernels;  // by mangled name; a problem.cu tells none
  bool is_problem = false;
  std::filesystem::path device_description;
  DeviceDescription device;
  std::vector<PlannedCase> plans;
};

// Reads FILE, --problem, --case, --shape, --knob, --grade and --gpu.
Result<PlannedFile> plan_cuda_file(const Options& options);

// "batch=4,n=64": a case of its own, of the problem's first family, derived axes computed.
Result<Case> case_of_shape(const Problem& problem, const std::string& shape);

// --knob NAME=VALUE of the knobs that the source declares.
Result<KnobValues> read_knobs(const std::string& source, const Options& options);

// The kernel's name without return type and parameters; of other nodes what they are.
std::string short_name(const PlanNode& node);

using TableLine = std::vector<std::string>;
// Columns are as wide as their widest word, within reason; the first line is the head.
void print_table(const std::vector<TableLine>& lines);

}  // namespace kbeam::cli
