// What a promotion watches a CPU candidate with: the same source in a build that a sanitizer
// observes, run by a program of its own. Only names and data; building and running is elsewhere.
#pragma once

#include <filesystem>
#include <string_view>

#include "model/candidate.h"

namespace kbeam {

enum class Watch {
  memory,   // AddressSanitizer and UndefinedBehaviorSanitizer
  threads,  // ThreadSanitizer
};
// "address_undefined", "thread": the name of the gate.
std::string_view to_string(Watch watch);

struct WatchedBuild {
  Artifact artifact;           // the candidate; its module is loaded by `host` alone
  std::filesystem::path host;  // built with the same sanitizer (build/watch_host.cpp)
};

}  // namespace kbeam
