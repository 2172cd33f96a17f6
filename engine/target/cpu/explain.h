// Turns what the kernel reported, helped by the runner's hints, into a verdict and a sentence for
// people.
#pragma once

#include <string>

#include "target/cpu/call_memory.h"
#include "target/cpu/control_page.h"
#include "target/cpu/launcher.h"
#include "target/cpu/runner.h"

namespace kbeam {

struct Incident {
  ChildEvent event;
  control::Fault hint;  // untrusted
  std::string during;   // "in call 7 (slot 1)"
  double timeout_s = 0;
  std::string printed;  // the candidate's last words
};

// For a child that did not come to its regular stop. The verdict rests on the event; the hint only
// chooses between verdicts that reject the candidate anyway.
RunnerFailure explain(const Incident& incident, const CallMemory& memory);

// A string of fixed size from the shared page, printable and bounded.
std::string read_text(const char* text, std::size_t size);

}  // namespace kbeam
