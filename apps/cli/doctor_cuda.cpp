#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "apps/cli/doctor.h"
#include "base/process.h"
#include "build/toolchain.h"
#include "execute/device_state.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

bool is_program(const fs::path& path) {
  return !path.empty() && ::access(path.c_str(), X_OK) == 0;
}

Finding examine_nvcc(const Result<Toolchain>& nvcc) {
  if (nvcc.ok()) return {"nvcc", State::works, nvcc->version + ", " + nvcc->program.string()};
  return {"nvcc", State::absent,
          nvcc.error().happened + ", so no .cu can be built: " + nvcc.error().advice};
}

Finding examine_program(const std::string& name, const fs::path& path, const std::string& purpose,
                        const std::string& advice) {
  if (is_program(path)) return {name, State::works, purpose};
  return {name, State::absent, fmt::format("not found; it {}. To have it: {}", purpose, advice)};
}

Finding examine_driver() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr)
    return {"cuda driver", State::works, "libcuda.so.1 can be loaded"};
  return {"cuda driver", State::absent,
          "libcuda.so.1 cannot be loaded, so nothing runs on a GPU here: install the NVIDIA driver "
          "(580 or newer for CUDA 13), or carry tasks to a machine that has one (kbeam bundle)"};
}

std::string model_of(const fs::path& gpu) {
  const auto text = read_file(gpu / "information");
  if (!text.ok()) return "NVIDIA GPU";
  constexpr std::string_view kKey = "Model:";
  const std::size_t at = text->find(kKey);
  if (at == std::string::npos) return "NVIDIA GPU";
  const std::size_t begin = text->find_first_not_of(" \t", at + kKey.size());
  return text->substr(begin, text->find('\n', begin) - begin);
}

Finding examine_gpu() {
  std::vector<std::string> found;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", trouble))
    found.push_back(model_of(entry.path()));
  if (!found.empty()) return {"gpu", State::works, fmt::format("{}", fmt::join(found, ", "))};
  if (fs::exists("/dev/nvidia0", trouble)) return {"gpu", State::works, "an NVIDIA GPU"};
  return {"gpu", State::absent,
          "no NVIDIA GPU: .cu candidates are built, planned and profiled here, and judged where "
          "there is one"};
}

// Opened as the worker opens it, and closed again.
Finding examine_cudnn() {
  void* const library = ::dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr)
    return {"cudnn", State::absent,
            "no libcudnn.so.9: the cudnn baseline of conv2d is left out (install cuDNN 9 for CUDA "
            "13, or "
            "name its folder in LD_LIBRARY_PATH)"};
  ::dlclose(library);
  return {"cudnn", State::works, "libcudnn.so.9, the baseline of convolutions"};
}

Finding examine_torch() {
  const auto outcome = run_process(
      {.command = {"/usr/bin/env", "python3", "-c",
                   "import importlib.metadata as m; print(m.version('torch'))"},
       .environment = {std::string("PATH=") + (std::getenv("PATH") ? std::getenv("PATH") : ""),
                       std::string("HOME=") + (std::getenv("HOME") ? std::getenv("HOME") : "/")},
       .timeout_s = 20});
  if (outcome.ok() && outcome->exit_code == 0)
    return {"pytorch", State::works,
            outcome->output.substr(0, outcome->output.find('\n')) +
                ", for comparisons with eager mode and torch.compile"};
  return {"pytorch", State::absent,
          "python3 has no torch: the comparison with PyTorch is left out (pip install torch)"};
}

}  // namespace

std::vector<Finding> examine_cuda(const Home& home) {
  const Result<Toolchain> nvcc = find_cuda_toolchain("nvcc");
  const std::string build_advice = "build it with `make build` where the CUDA toolkit is";
  std::vector<Finding> findings = {
      examine_nvcc(nvcc),
      examine_program("kbeam-planner", home.planner, "plans CUDA candidates without a GPU",
                      "build it with `make build`"),
      examine_program("kbeam-worker", home.worker, "judges CUDA candidates on a GPU", build_advice),
      examine_driver(),
      examine_gpu(),
      examine_program("compute-sanitizer", find_cuda_tool("compute-sanitizer"),
                      "tells whether a winner touches memory that is not its own",
                      "install cuda-sanitizer of the toolkit on the machine with the GPU"),
      examine_program("ncu", find_cuda_tool("ncu"), "adds hardware counters to kbeam profile",
                      "install nsight-compute on the machine with the GPU"),
      examine_program("cuobjdump",
                      find_cuda_tool("nvdisasm").empty() ? fs::path() : find_cuda_tool("cuobjdump"),
                      "gives kbeam profile the instruction mix, with nvdisasm",
                      "install cuda-cuobjdump and cuda-nvdisasm of the toolkit, or `pip install "
                      "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm` and put both on the PATH"),
      examine_cudnn(),
      examine_torch(),
  };
  for (const Quarantine& found : DeviceStates().all())
    findings.push_back({"gpu quarantine", State::weaker, found.text()});
  return findings;
}

}  // namespace kbeam::cli
