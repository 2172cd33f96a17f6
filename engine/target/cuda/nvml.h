// What the management library says of a GPU beside a measurement: clocks, temperature, power, why
// it slows down, who else computes on it. Reads only; sets nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

struct GpuReading {
  double sm_clock_mhz = 0;
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  std::string throttle_reasons;  // "none", or names joined by commas
};

class GpuMonitor {
 public:
  // `uuid` as SeatDevice has it ("GPU-..."). An Error where the library or the device is missing.
  static Result<std::unique_ptr<GpuMonitor>> open(const std::string& uuid);
  virtual ~GpuMonitor() = default;
  // What cannot be read stays 0.
  virtual GpuReading read() = 0;
  // Process ids that hold a compute context on the device, ours included.
  virtual std::vector<unsigned> compute_processes() = 0;
};

// The names of the bits that nvmlDeviceGetCurrentClocksEventReasons sets; idling is no reason.
std::string throttle_text(unsigned long long reasons);

}  // namespace kbeam
