// Which GPU a device number is, and what no kernel on it can beat, as its driver says. Makes no
// context: the device may be busy with somebody else's measurement.
#pragma once

#include <filesystem>
#include <string>

#include "apps/worker/trial.h"
#include "base/json.h"
#include "base/result.h"

namespace kbeam {

struct DeviceIdentity {
  std::string uuid;
  std::string name;
  int architecture = 0;  // 90 for compute capability 9.0; 0: unknown
  int multiprocessors = 0;
  DeviceCeilings ceilings;
};

// Asks the driver in this process: for `kbeam-worker --identify`, which sees one device.
Result<DeviceIdentity> read_device_identity();
Json to_json(const DeviceIdentity& identity);

// Asks in a child process with the environment that a seat gets, so that both see the same device
// and no driver is loaded here.
Result<DeviceIdentity> identify_device(const std::filesystem::path& worker, int device);

// Theoretical rates from what the driver says of the chip; what is not known stays 0.
struct ChipFacts {
  int architecture = 0;  // 90 for compute capability 9.0
  int multiprocessors = 0;
  double clock_hz = 0;
  double memory_clock_hz = 0;
  double memory_bus_bits = 0;
  double l2_bytes = 0;
};
DeviceCeilings ceilings_of(const ChipFacts& chip);

}  // namespace kbeam
