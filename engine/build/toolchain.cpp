#include "build/toolchain.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/process.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

bool is_program(const fs::path& path) {
  return ::access(path.c_str(), X_OK) == 0;
}

fs::path find_program(const std::string& command) {
  if (command.find('/') != std::string::npos)
    return is_program(command) ? fs::absolute(command) : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, end)) / command;
    // A compiler wrapper such as ccache would write outside the build folder.
    const bool is_wrapper = candidate.string().find("ccache") != std::string::npos;
    if (!is_wrapper && candidate.is_absolute() && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

Result<std::string> ask(const Toolchain& toolchain, std::vector<std::string> question) {
  question.insert(question.begin(), toolchain.program.string());
  const std::string attempted = "ask the compiler " + toolchain.program.string() + " about itself";
  const auto outcome = run_process({.command = std::move(question),
                                    .environment = toolchain.environment("/tmp"),
                                    .timeout_s = 30});
  if (!outcome.ok()) return outcome.error();
  if (outcome->exit_code != 0)
    return Error{ErrorCode::unavailable, attempted, outcome->output.substr(0, 500),
                 "reinstall the compiler"};
  return outcome->output;
}

}  // namespace

std::vector<std::string> Toolchain::environment(const fs::path& folder) const {
  return {"PATH=" + program.parent_path().string() + ":/usr/bin:/bin", "TMPDIR=" + folder.string(),
          "LC_ALL=C", "SOURCE_DATE_EPOCH=0"};
}

Result<Toolchain> find_toolchain(const std::string& command, const std::string& march) {
  Toolchain toolchain;
  toolchain.program = find_program(command);
  if (toolchain.program.empty())
    return Error{ErrorCode::unavailable, "find the compiler " + command, "there is no such program",
                 "install it (on Debian: apt install g++), or name another compiler"};
  ASSIGN_OR_RETURN(const std::string version, ask(toolchain, {"--version"}));
  toolchain.version = version.substr(0, version.find('\n'));
  toolchain.is_clang = version.find("clang") != std::string::npos;
  // Runs nothing: prints the commands that it would run, with native spelt out.
  ASSIGN_OR_RETURN(toolchain.target,
                   ask(toolchain, {"-march=" + march, "-###", "-E", "-x", "c++", "/dev/null"}));
  return toolchain;
}

fs::path find_cuda_tool(const std::string& name) {
  if (fs::path found = find_program(name); !found.empty()) return found;
  std::vector<fs::path> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable)) roots.emplace_back(folder);
  roots.emplace_back("/usr/local/cuda");
  for (const fs::path& root : roots)
    for (const char* folder : {"bin", "compute-sanitizer"})
      if (is_program(root / folder / name)) return root / folder / name;
  return {};
}

Result<Toolchain> find_cuda_toolchain(const std::string& command) {
  Toolchain toolchain;
  toolchain.program = find_cuda_tool(command);
  if (toolchain.program.empty())
    return Error{
        ErrorCode::unavailable, "find the CUDA compiler " + command, "there is no such program",
        "install the CUDA toolkit 13 (nvcc alone is enough), and put its bin folder on the "
        "PATH or name its folder in CUDA_HOME"};
  // Its tools lie beside the real program.
  std::error_code trouble;
  if (const fs::path real = fs::canonical(toolchain.program, trouble); !trouble)
    toolchain.program = real;
  ASSIGN_OR_RETURN(const std::string answer, ask(toolchain, {"--version"}));
  const std::size_t release = answer.find("release ");
  if (release == std::string::npos)
    return Error{ErrorCode::unavailable, "ask " + toolchain.program.string() + " for its version",
                 answer.substr(0, 200), "install the CUDA toolkit 13"};
  toolchain.version = "nvcc " + answer.substr(release, answer.find('\n', release) - release);
  return toolchain;
}

}  // namespace kbeam
