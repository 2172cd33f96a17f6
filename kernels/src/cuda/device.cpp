#include <kernelbeam/cuda/device.h>

#include <exception>
#include <utility>

#include "cuda/check.h"
#include "cuda/device_state.h"
#include "cuda/occupancy.h"

namespace kernelbeam::cuda {
namespace {

constexpr int kArchitecture = 90;  // the rows are built for compute capability 9.0 alone

Status describe_device(int ordinal, kbeam_device& device) {
  int value = 0;
  const auto ask = [&](cudaDeviceAttr attribute) {
    return status_of(cudaDeviceGetAttribute(&value, attribute, ordinal));
  };
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrComputeCapabilityMajor));
  device.architecture = 10 * value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrComputeCapabilityMinor));
  device.architecture += value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrMultiProcessorCount));
  device.multiprocessors = value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  device.shared_bytes_per_block = value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  device.shared_bytes_per_multiprocessor = value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrMaxRegistersPerMultiprocessor));
  device.registers_per_multiprocessor = value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrMaxThreadsPerMultiProcessor));
  device.threads_per_multiprocessor = value;
  KERNELBEAM_RETURN_IF_BAD(ask(cudaDevAttrL2CacheSize));
  device.l2_bytes = value;
  return count_resident_clusters(device);
}

}  // namespace

CurrentDevice::CurrentDevice(int ordinal) {
  status_ = status_of(cudaGetDevice(&before_));
  if (status_ != Status::ok || before_ == ordinal) return;
  status_ = status_of(cudaSetDevice(ordinal));
  changed_ = status_ == Status::ok;
}

CurrentDevice::~CurrentDevice() {
  if (changed_) cudaSetDevice(before_);
}

Device::Device(std::unique_ptr<DeviceState> state) : state_(std::move(state)) {}
Device::~Device() = default;

std::unique_ptr<Device> Device::make(int ordinal) noexcept {
  try {
    auto state = std::make_unique<DeviceState>();
    state->ordinal = ordinal;
    const CurrentDevice current(ordinal);
    if (current.status() != Status::ok) return nullptr;
    if (describe_device(ordinal, state->device.description) != Status::ok) return nullptr;
    if (state->device.description.architecture != kArchitecture) return nullptr;
    state->device.resident_blocks = resident_blocks;
    return std::unique_ptr<Device>(new Device(std::move(state)));
  } catch (const std::exception&) {
    return nullptr;
  }
}

int Device::ordinal() const noexcept {
  return state_->ordinal;
}

}  // namespace kernelbeam::cuda
