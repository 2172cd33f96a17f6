// What a Device holds. The mutex makes threads take turns while they enqueue.
#pragma once

#include <cstddef>
#include <mutex>

#include "cuda/graph_cache.h"
#include "cuda/launch_recorder.h"
#include "cuda/plan_replay.h"
#include "plan_cache.h"

namespace kernelbeam::cuda {

struct DeviceState {
  static constexpr std::size_t kMostPlans = 256;

  int ordinal = 0;
  PlanDevice device;
  std::mutex mutex;
  PlanCache<RecordedPlan> plans{kMostPlans};
  ReplayTools replay;
  GraphCache graphs;
};

// The device is current until the end of the scope; another one of the caller's is put back then.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  Status status() const { return status_; }

 private:
  int before_ = 0;
  bool changed_ = false;
  Status status_;
};

}  // namespace kernelbeam::cuda
