#include "apps/worker/device_identity.h"

#include <cuda.h>
#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/foreign_json.h"
#include "base/process.h"
#include "model/json_forms.h"
#include "target/cuda/driver.h"
#include "target/cuda/seat_process.h"

namespace kbeam {
namespace {

DeviceIdentity ask(const Driver& cuda) {
  CUdevice device = 0;
  DRIVER(cuda, cuInit, 0);
  DRIVER(cuda, cuDeviceGet, &device, 0);
  std::array<char, 256> name{};
  DRIVER(cuda, cuDeviceGetName, name.data(), static_cast<int>(name.size()), device);
  CUuuid uuid{};
  DRIVER(cuda, cuDeviceGetUuid, &uuid, device);
  // Old chips and some virtual ones do not say everything: that stays 0.
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return cuda.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  const ChipFacts chip{
      .architecture = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                      attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
      .multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      .clock_hz = 1e3 * attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
      .memory_clock_hz = 1e3 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
      .memory_bus_bits = 1.0 * attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
      .l2_bytes = 1.0 * attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)};
  return {uuid_text(uuid), name.data(), chip.architecture, chip.multiprocessors, ceilings_of(chip)};
}

Error unknown(int device, std::string happened) {
  return {ErrorCode::unavailable, fmt::format("find GPU {}", device), std::move(happened),
          "see `kbeam doctor`"};
}

}  // namespace

Result<DeviceIdentity> read_device_identity() {
  ASSIGN_OR_RETURN(const auto cuda, Driver::load());
  try {
    return ask(*cuda);
  } catch (const DriverFailure& failure) {
    return unknown(0, failure.what());
  }
}

Json to_json(const DeviceIdentity& identity) {
  return {{"uuid", identity.uuid},
          {"name", identity.name},
          {"architecture", identity.architecture},
          {"multiprocessors", identity.multiprocessors},
          {"bytes_per_s", identity.ceilings.bytes_per_s},
          {"flops_per_s", identity.ceilings.flops_per_s},
          {"l2_bytes", identity.ceilings.l2_bytes}};
}

Result<DeviceIdentity> identify_device(const std::filesystem::path& worker, int device) {
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_process({.command = {worker.string(), "--identify"},
                                .folder = {},
                                .environment = seat_environment(device),
                                .timeout_s = 60,
                                .cancelled = {},
                                .before_exec = {}}));
  if (outcome.exit_code != 0)
    return unknown(device, outcome.output.empty() ? "the driver does not answer" : outcome.output);
  const Json json = parse_foreign_json(outcome.output);
  try {
    return DeviceIdentity{
        json.at("uuid").get<std::string>(),
        json.at("name").get<std::string>(),
        json.at("architecture").get<int>(),
        json.at("multiprocessors").get<int>(),
        {json.at("bytes_per_s").get<double>(), json.at("flops_per_s").get<double>(),
         json.at("l2_bytes").get<double>()}};
  } catch (const Json::exception& trouble) {
    return unknown(device, trouble.what());
  }
}

}  // namespace kbeam
