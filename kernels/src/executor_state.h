// What an Executor holds. The mutex makes calls take turns: threads, plans and scratch belong to
// one call at a time.
#pragma once

#include <kbeam/cpu_plan.h>

#include <cstddef>
#include <mutex>

#include "plan_cache.h"

namespace kernelbeam {

struct ExecutorState {
  static constexpr std::size_t kMostPlans = 64;

  explicit ExecutorState(int threads) : team(threads), plans(kMostPlans) {}

  std::mutex mutex;
  kbeam::WorkerTeam team;
  PlanCache<kbeam::CpuPlan> plans;
};

}  // namespace kernelbeam
