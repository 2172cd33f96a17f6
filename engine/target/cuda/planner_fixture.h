// Requests as the tests of the planner make them.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "target/cuda/planner.h"

namespace kbeam {

inline PlannerOptions test_planner_options() {
  const std::filesystem::path binary = KBEAM_BINARY_DIR, source = KBEAM_SOURCE_DIR;
  PlannerOptions options;
  options.planner = binary / "kbeam-planner";
  options.device_description = source / "contract/devices/h200.json";
  return options;
}

// Tensors x (batch x n, input) and y (the same, output) of floats.
inline PlanRequest test_plan_request(const std::filesystem::path& module, std::int64_t batch = 4,
                                     std::int64_t n = 64) {
  PlanRequest request;
  request.module = module;
  request.tensors = {{"x", KBEAM_INPUT, KBEAM_F32, {batch, n}, {n, 1}},
                     {"y", KBEAM_OUTPUT, KBEAM_F32, {batch, n}, {n, 1}}};
  request.axes = {{"batch", batch}, {"n", n}};
  return request;
}

inline std::filesystem::path test_module(const std::string& name) {
  return std::filesystem::path(KBEAM_BINARY_DIR) / "tests/cuda" / (name + ".so");
}

}  // namespace kbeam
