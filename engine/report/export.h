// What leaves kernelbeam: a candidate as a folder that builds by itself, and a run as a data set.
// Made from loaded data; builds and measures nothing.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "report/report.h"

namespace kbeam {

enum class ExportAs {
  library,  // C and C++ interface, dispatch over shapes, example, test
  source,   // the judged sources as they are, compiled and no more
};

struct ExportRequest {
  const ReportInput& run;  // its problem, the candidate's evaluations, the machine
  const Candidate& candidate;
  ExportAs as = ExportAs::library;
  std::filesystem::path contract_include;  // the contract's headers, which are copied
};

// Writes the folder whole or not at all; refuses one that is already there. A candidate of .cu
// files can only leave as source: its plan is launched by a trusted worker, and that stays here.
Result<void> export_candidate(const ExportRequest& request, const std::filesystem::path& folder);

// One JSON object a line: the campaign first, then every attempt (docs/export.md names each field).
// Holds no prompt and no reply of a model.
std::string render_dataset(const ReportInput& run);

}  // namespace kbeam
