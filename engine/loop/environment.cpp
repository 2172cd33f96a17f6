// probe_environment: what this machine says of itself.
#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "loop/research_loop.h"

namespace kbeam {
namespace {

// The value of the first line of /proc/cpuinfo that begins with one of `keys` (x86 and Arm use
// other words).
std::string cpuinfo_value(std::initializer_list<std::string_view> keys) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    for (const std::string_view key : keys)
      if (line.compare(0, key.size(), key) == 0 && line.find(':') != std::string::npos)
        return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown";
}

}  // namespace

Result<Environment> probe_environment(const std::string& compiler_version,
                                      const std::vector<std::string>& compile_flags) {
  Environment environment;
  environment.cpu = cpuinfo_value({"model name", "CPU implementer"});
  cpu_set_t set;
  CPU_ZERO(&set);
  environment.cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  static constexpr std::array kTold{"sse4_2",   "avx",         "avx2",  "fma", "avx512f",
                                    "amx_tile", "avx512_fp16", "asimd", "sve"};
  std::istringstream flags(cpuinfo_value({"flags", "Features"}));
  for (std::string flag; flags >> flag;)
    if (std::find(kTold.begin(), kTold.end(), flag) != kTold.end())
      environment.instruction_sets.push_back(flag);
  utsname system{};
  if (uname(&system) == 0) environment.kernel = std::string(system.sysname) + " " + system.release;
  environment.compiler = compiler_version;
  environment.compile_flags = compile_flags;
  environment.tool_version = KBEAM_VERSION;
  return environment;
}

}  // namespace kbeam
