// For the tests of this folder: a runner with the test candidates and a small problem, H = 2 A and
// tau = A + 1.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/entropy.h"
#include "target/cpu/runner.h"
#include "target/cpu/test_candidates/deeds.h"

namespace kbeam::testing {

inline constexpr std::int64_t kLength = 1000;
inline constexpr double kPatience_s = 60;

inline std::filesystem::path candidate_module(const std::string& name) {
  return std::filesystem::path(KBEAM_BINARY_DIR) / "tests/candidates" / (name + ".so");
}

inline RunnerOptions options_for(const std::string& name, int workers = 1) {
  RunnerOptions options;
  options.runner = std::filesystem::path(KBEAM_BINARY_DIR) / "kbeam-runner";
  options.modules = {candidate_module(name)};
  options.workers = workers;
  options.input_bytes = 1 << 20;
  options.output_bytes = 1 << 20;
  options.memory_bytes = std::int64_t{1} << 30;
  options.load_timeout_s = kPatience_s;
  options.least_sandbox = SandboxLevel::none;  // KBEAM_SANDBOX decides
  return options;
}

inline std::vector<TensorShape> shapes(std::int64_t length = kLength) {
  return {{"A", KBEAM_INPUT, KBEAM_F32, {length}, {1}},
          {"H", KBEAM_OUTPUT, KBEAM_F32, {length}, {1}},
          {"tau", KBEAM_OUTPUT, KBEAM_F32, {length}, {1}}};
}

inline AxisValues axes(Deed deed, std::int64_t length = kLength) {
  return {{"n", length}, {"deed", static_cast<std::int64_t>(deed)}};
}

inline std::unique_ptr<Runner> start_runner(const RunnerOptions& options) {
  auto started = Runner::start(options);
  EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.error().text());
  if (!started.ok()) return nullptr;
  EXPECT_TRUE(started->ok()) << started->failure.sentence;
  return started->ok() ? std::move(*started->value) : nullptr;
}

inline void fill_inputs(const Slot& slot, float first) {
  for (std::int64_t i = 0; i < slot.inputs[0].elements; ++i)
    slot.inputs[0].f32()[i] = first + static_cast<float>(i);
}

inline void expect_right(const Slot& slot, float first) {
  for (std::int64_t i = 0; i < slot.inputs[0].elements; ++i) {
    const float a = first + static_cast<float>(i);
    ASSERT_EQ(slot.outputs[0].f32()[i], 2 * a) << i;
    ASSERT_EQ(slot.outputs[1].f32()[i], a + 1) << i;
  }
}

}  // namespace kbeam::testing
