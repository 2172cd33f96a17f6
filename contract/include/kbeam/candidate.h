// All that a candidate includes. See docs/candidate.md for a worked example.
#pragma once

#include <kbeam/knob.h>
#include <kbeam/plan.h>
#include <kbeam/simd.h>
