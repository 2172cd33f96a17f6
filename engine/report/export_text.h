// The fixed parts of an exported folder, embedded from exported/ and contract/src when kbeam is
// built.
#pragma once

#include <string_view>

namespace kbeam {

// With slots: {{name}}.
extern const std::string_view kExportCMake;
extern const std::string_view kExportLibraryCMake;
extern const std::string_view kExportHeader;
extern const std::string_view kExportLibrary;
extern const std::string_view kExportTest;
extern const std::string_view kExportExample;
extern const std::string_view kExportCExample;
// As they are.
extern const std::string_view kContractCpuPlan;
extern const std::string_view kContractWorkerTeam;
extern const std::string_view kContractSpin;
extern const std::string_view kLicence;

}  // namespace kbeam
