// The C interface between a candidate's plan function and whoever records the plan.
// Candidates do not include this directly; kbeam/plan.h wraps it. Changing anything here raises
// KBEAM_ABI.
#pragma once

#include <stdint.h>

#define KBEAM_ABI 1
#define KBEAM_MAX_RANK 4

#ifdef __cplusplus
extern "C" {
#endif

enum kbeam_element_type { KBEAM_F32 = 0, KBEAM_F64 = 1, KBEAM_I32 = 2, KBEAM_I64 = 3 };
enum kbeam_role { KBEAM_INPUT = 0, KBEAM_OUTPUT = 1 };
enum kbeam_plan_failure { KBEAM_BAD_PLAN = 0, KBEAM_NOT_SUPPORTED = 1 };

// A tensor of the problem for one case. `id` indexes the buffer table of the call; strides count
// elements.
struct kbeam_buffer {
  int32_t id;
  int32_t rank;
  int64_t dim[KBEAM_MAX_RANK];
  int64_t stride[KBEAM_MAX_RANK];
};

// One step of a plan. `invoke` runs work items [begin, end) on one worker with the buffers of the
// call. The host copies `closure`. A step starts when the step before it has ended on every worker.
struct kbeam_step {
  void (*invoke)(const void* closure, void* const* buffers, int64_t begin, int64_t end,
                 int32_t worker);
  const void* closure;
  uint32_t closure_bytes;
  int64_t count;  // work items; 1 for a plain call
  int64_t grain;  // items handed to a worker at a time; 0: one equal share a worker
};

struct kbeam_host {
  uint32_t abi;
  int32_t workers;
  void* self;
  int32_t (*find_buffer)(void* self, const char* name, int32_t role, int32_t element_type,
                         struct kbeam_buffer* found);
  int64_t (*axis)(void* self, const char* name);
  int32_t (*scratch)(void* self, int64_t bytes, int32_t copies);
  void (*add_step)(void* self, const struct kbeam_step* step);
  void (*note)(void* self, const char* key, const char* value);
  void (*fail)(void* self, int32_t kind, const char* message);
};

typedef void kbeam_plan_function(const struct kbeam_host* host);

#ifdef __cplusplus
}
#endif
