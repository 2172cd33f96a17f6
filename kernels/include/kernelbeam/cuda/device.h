// Where GPU calls run: one device, the plans that earlier calls have made, and streams for the
// branches of a plan. Knows no operation.
#pragma once

#include <memory>

namespace kernelbeam::cuda {

struct DeviceState;

// Calls only enqueue, so many may be under way on many streams. Threads may share a Device, they
// take turns while they enqueue; a thread that captures its stream into a graph needs one of its
// own.
class Device {
 public:
  // `ordinal` as cudaSetDevice counts. Null when there is no such device, or this library has no
  // kernels for it.
  static std::unique_ptr<Device> make(int ordinal = 0) noexcept;
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const noexcept;
  DeviceState& state() noexcept { return *state_; }  // for the library's own use

 private:
  explicit Device(std::unique_ptr<DeviceState> state);
  std::unique_ptr<DeviceState> state_;
};

}  // namespace kernelbeam::cuda
