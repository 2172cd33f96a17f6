// `kbeam-worker --probe`: asks a device a known question outside any task, and keeps the record of
// quarantines. Makes no seat itself.
#pragma once

#include <optional>
#include <string>

#include "apps/worker/conductor.h"
#include "base/clock.h"
#include "base/result.h"
#include "execute/device_state.h"

namespace kbeam {

enum class ProbeAction { look, clear };  // clear: a good answer lifts a quarantine

struct ProbeOutcome {
  bool sound = false;
  SeatDevice device;
  std::optional<Quarantine> quarantine;  // as it is afterwards
  std::string text() const;
};

struct ProbeRequest {
  SeatOptions seat;  // of the witness
  std::string device_uuid;
  std::string device_name;
  ProbeAction action = ProbeAction::look;
};

// A wrong answer quarantines the device, whatever the action. Fails where no seat could be started
// for reasons of ours.
Result<ProbeOutcome> probe_device(const ProbeRequest& request, const ConductorTools& tools,
                                  const DeviceStates& devices, const Clock& clock);

}  // namespace kbeam
