// A made-up campaign for the tests of reports: deterministic, of any length, with every kind of
// attempt. Its numbers mean nothing and appear in no document.
#pragma once

#include <cstdint>

#include "report/report.h"

namespace kbeam {

// `checks`: check reports of an evaluation; a real screen of batched_qr has 54.
ReportInput make_synthetic_campaign(int attempts, std::uint64_t seed, int checks = 1);

}  // namespace kbeam
