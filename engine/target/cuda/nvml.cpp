#include "target/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>

namespace kbeam {
namespace {

// The few declarations of nvml.h that are needed: the header is not part of every toolkit. The
// library keeps these stable by version suffixes.
using NvmlDevice = struct nvmlDevice_st*;
struct NvmlProcess {  // nvmlProcessInfo_t of the _v3 calls
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
constexpr std::size_t kMostProcesses = 256;

struct Table {
  int (*init)() = nullptr;
  int (*device_by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
};

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr std::array kReasons{
    Reason{0x2, "applications clocks setting"}, Reason{0x4, "software power cap"},
    Reason{0x8, "hardware slowdown"},           Reason{0x10, "sync boost"},
    Reason{0x20, "software thermal slowdown"},  Reason{0x40, "hardware thermal slowdown"},
    Reason{0x80, "hardware power brake"},       Reason{0x100, "display clock setting"}};
constexpr unsigned long long kIdle = 0x1;

class LoadedMonitor final : public GpuMonitor {
 public:
  LoadedMonitor(const Table& table, NvmlDevice device) : table_(table), device_(device) {}

  GpuReading read() override {
    GpuReading reading;
    unsigned value = 0;
    if (table_.clock(device_, kClockSm, &value) == kSuccess) reading.sm_clock_mhz = value;
    if (table_.clock(device_, kClockMemory, &value) == kSuccess) reading.memory_clock_mhz = value;
    if (table_.temperature(device_, kTemperatureGpu, &value) == kSuccess)
      reading.temperature_c = value;
    if (table_.power(device_, &value) == kSuccess) reading.power_w = value / 1000.0;
    unsigned long long reasons = 0;
    reading.throttle_reasons =
        table_.reasons(device_, &reasons) == kSuccess ? throttle_text(reasons) : "unknown";
    return reading;
  }

  std::vector<unsigned> compute_processes() override {
    std::vector<NvmlProcess> found(kMostProcesses);
    unsigned count = kMostProcesses;
    std::vector<unsigned> ids;
    if (table_.processes(device_, &count, found.data()) != kSuccess) return ids;
    for (unsigned i = 0; i < count && i < kMostProcesses; ++i) ids.push_back(found[i].pid);
    return ids;
  }

 private:
  Table table_;
  NvmlDevice device_;
};

}  // namespace

Result<std::unique_ptr<GpuMonitor>> GpuMonitor::open(const std::string& uuid) {
  const auto failed = [&](std::string happened) {
    return Error{ErrorCode::unavailable, "watch the clocks of " + uuid, std::move(happened),
                 "results carry no clocks and throttle reasons"};
  };
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failed("libnvidia-ml.so.1 is not on this machine");
  Table table;
  bool complete = true;
  const auto find = [&](auto& function, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (function == nullptr)
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    complete &= function != nullptr;
  };
  find(table.init, {"nvmlInit_v2"});
  find(table.device_by_uuid, {"nvmlDeviceGetHandleByUUID"});
  find(table.clock, {"nvmlDeviceGetClockInfo"});
  find(table.temperature, {"nvmlDeviceGetTemperature"});
  find(table.power, {"nvmlDeviceGetPowerUsage"});
  find(table.reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(table.processes, {"nvmlDeviceGetComputeRunningProcesses_v3"});
  if (!complete) return failed("libnvidia-ml.so.1 lacks an entry point");
  if (const int status = table.init(); status != kSuccess)
    return failed(fmt::format("nvmlInit returned {}", status));
  NvmlDevice device = nullptr;
  if (const int status = table.device_by_uuid(uuid.c_str(), &device); status != kSuccess)
    return failed(fmt::format("nvmlDeviceGetHandleByUUID returned {}", status));
  return std::unique_ptr<GpuMonitor>(new LoadedMonitor(table, device));
}

std::string throttle_text(unsigned long long reasons) {
  std::string text;
  unsigned long long known = kIdle;
  for (const Reason& reason : kReasons) {
    known |= reason.bit;
    if (reasons & reason.bit) text += std::string(text.empty() ? "" : ", ") + reason.name;
  }
  if (reasons & ~known)
    text += fmt::format("{}unknown bits {:#x}", text.empty() ? "" : ", ", reasons & ~known);
  return text.empty() ? "none" : text;
}

}  // namespace kbeam
