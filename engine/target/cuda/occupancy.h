// How many blocks of a kernel a multiprocessor has room for. Pure; shared by the engine and the
// planner process.
#pragma once

#include <kbeam/launch_abi.h>

#include <cstdint>

#include "model/candidate.h"

namespace kbeam {

// Blocks that are resident on one multiprocessor at once, by the documented allocation rules:
// registers in units of 256 a warp from four separate files, 1 KB of shared memory kept by the
// system for each block. 0: such a block cannot run.
int resident_blocks(const KernelResources& kernel, const kbeam_device& device, std::int64_t threads,
                    std::int64_t dynamic_shared_bytes);

}  // namespace kbeam
