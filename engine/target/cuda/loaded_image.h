// The device code of one plan, loaded: kernels by name, checked against what the plan says of them.
// Reloading brings module variables back to their initial values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "target/cuda/driver.h"

namespace kbeam {

class LoadedImage {
 public:
  // `bytes` outlives this object.
  LoadedImage(const Driver& cuda, const std::string& bytes);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  // Every graph that launches kernels of this image is destroyed first: a graph does not keep its
  // module alive.
  void reload();
  CUfunction function(const std::string& mangled_name);

  // Raises what the plan's launches need beyond the defaults (dynamic shared memory, clusters of
  // more than 8 blocks, carve-out) on each kernel. These stick to the function, so they come before
  // its nodes are added.
  void opt_in(const LaunchPlan& plan);

  // Of the deepest kernel that the plan launches, a thread.
  std::uint32_t local_bytes(const LaunchPlan& plan);

  // What the device refuses of this plan, a sentence each: kernels that are missing, parameters of
  // other sizes, launches that can never run.
  std::vector<std::string> find_mistakes(const LaunchPlan& plan, CUdevice device);

 private:
  std::string find_launch_mistake(const PlanNode& node, CUdevice device);
  std::string find_parameter_mistake(const PlanNode& node, CUfunction function) const;

  const Driver& cuda_;
  const std::string& bytes_;
  CUmodule module_ = nullptr;
  std::map<std::string, CUfunction> functions_;
};

}  // namespace kbeam
