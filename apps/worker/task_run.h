// One task folder from its files to its result: reads it, has it conducted, keeps its progress, and
// quarantines a device that fails its probe. Makes no seat itself.
#pragma once

#include <filesystem>

#include "apps/worker/conductor.h"
#include "base/clock.h"
#include "base/result.h"
#include "execute/device_state.h"

namespace kbeam {

struct TaskRunOptions {
  ConductorOptions conductor;
  std::string device_name;
  // The folder's check cases as kind plain, whatever its kind; nothing is written to the folder.
  bool as_plain = false;
};

struct TaskRun {
  bool was_done = false;  // by an earlier call
  Conducted conducted;
};

// `tools.save` is set here. The caller holds the lock of the device.
Result<TaskRun> run_task_folder(const std::filesystem::path& folder, const TaskRunOptions& options,
                                ConductorTools tools, const DeviceStates& devices,
                                const Clock& clock);

}  // namespace kbeam
