// The one sentence of a profile: what holds this case back, by the strongest evidence there is.
#pragma once

#include <string>

#include "report/profile.h"

namespace kbeam {

std::string describe_bottleneck(const CaseProfile& profile, const CaseToProfile& subject);

}  // namespace kbeam
