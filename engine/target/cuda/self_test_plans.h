// The launch plans of the self test, written by hand: no planner is involved.
#pragma once

#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "model/problem.h"

namespace kbeam::self_test {

inline constexpr const char* kImageHash = "self test";

std::vector<TensorShape> tensors();  // A, Y, marks

LaunchPlan generate_plan();
// How Y follows from A; `tour` also compares the marks.
enum class Relation { tour, affine, product, factor };
LaunchPlan check_plan(Relation relation);

// Subjects, by name: "tour", "gemm", "cusolver.sgeqrf", "cublas.sgeqrf_batched", "wrong_value",
// "unwritten", "outside", "mutates", "far_outside", "hangs", "ends_early", "reads", "pins",
// "bad_parameter".
LaunchPlan subject_plan(const std::string& name);

}  // namespace kbeam::self_test
