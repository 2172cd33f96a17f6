#include "apps/worker/device_probe.h"

#include <fmt/core.h>

namespace kbeam {

std::string ProbeOutcome::text() const {
  const std::string line =
      fmt::format("{}: the probe {}", device.name.empty() ? "the GPU" : device.name,
                  sound ? "passed" : "failed");
  return quarantine ? fmt::format("{}\n{}", line, quarantine->text()) : line;
}

Result<ProbeOutcome> probe_device(const ProbeRequest& request, const ConductorTools& tools,
                                  const DeviceStates& devices, const Clock& clock) {
  ProbeOutcome outcome;
  outcome.device.name = request.device_name;
  outcome.device.uuid = request.device_uuid;
  std::optional<SeatFailure> failure;
  const auto witness = tools.start_seat(SeatRole::witness, request.seat, failure);
  std::string evidence = "a probe gave a wrong answer";
  if (failure && failure->verdict == Verdict::over_memory)
    return Error{ErrorCode::busy, "probe " + request.device_uuid, failure->sentence,
                 "end what fills its memory, then probe again"};
  if (failure) {
    evidence = "no process can use it: " + failure->sentence;
  } else if (!witness.ok()) {
    return witness.error();
  } else {
    outcome.device = (*witness)->device();
    outcome.sound = (*witness)->probe();
  }
  if (!outcome.sound)
    RETURN_IF_ERROR(
        devices.quarantine({request.device_uuid, request.device_name, evidence, clock.unix_ms()}));
  else if (request.action == ProbeAction::clear && devices.find(request.device_uuid))
    RETURN_IF_ERROR(devices.clear(request.device_uuid, "a probe passed", clock.unix_ms()));
  outcome.quarantine = devices.find(request.device_uuid);
  return outcome;
}

}  // namespace kbeam
