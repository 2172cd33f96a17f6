// All that a candidate includes. See docs/candidate.md for a worked example.
#pragma once

#include <kbeam/knob.h>
#ifdef __CUDACC__
#include <kbeam/launch_plan.h>
#else
#include <kbeam/plan.h>
#include <kbeam/simd.h>
#endif
