// What is judged: a candidate or a baseline whose rows have been built.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/candidate.h"

namespace kbeam {

// What is run: a candidate or a baseline, built.
struct Subject {
  std::string id;
  std::vector<Row> rows;                       // which row serves which value of the regime axis
  std::vector<std::filesystem::path> modules;  // one a row
  // CUDA: what the compiler reported of each row's kernels, by mangled name.
  std::vector<std::map<std::string, KernelResources>> kernels{};
  bool may_use_libraries = false;  // baselines and ceilings
};

}  // namespace kbeam
