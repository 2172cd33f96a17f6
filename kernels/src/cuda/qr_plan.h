// Which row serves a shape, and its recorded plan.
#pragma once

#include <kernelbeam/status.h>

#include <cstdint>

#include "cuda/launch_recorder.h"
#include "cuda/rows.h"

namespace kernelbeam::cuda {

struct QrPlan {
  const QrRow* row = nullptr;  // null: none takes the shape
  RecordedPlan plan;
};
QrPlan plan_geqrf(std::int64_t batch, std::int64_t m, std::int64_t n, const PlanDevice& device);

}  // namespace kernelbeam::cuda
