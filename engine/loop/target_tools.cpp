#include "loop/target_tools.h"

#include <cstdlib>

#include "build/toolchain.h"
#include "session/cpu_judge.h"
#include "session/cuda_judge.h"

namespace kbeam {
namespace {

std::unique_ptr<Judge> make_cpu_judge(const TargetRequest& request, TargetTools& tools) {
  JudgeOptions options;
  options.runner = request.home.runner;
  options.candidate_cpus = request.candidate_cpus;
  options.grade = request.grade;
  options.seed = request.seed;
  options.fixed_key = request.fixed_key;
  options.screen_timeout_s = request.screen_timeout_s;
  options.give_up = request.give_up;
  options.on_lock_wait = request.on_lock_wait;
  options.build_watched = [compiler = tools.compiler.get(), flags = request.problem.compile_flags](
                              const Row& row, Watch watch) {
    return compiler->build_watched({.source = row.source,
                                    .source_name = row.source_name,
                                    .knobs = row.knobs,
                                    .flags = flags,
                                    .link = {}},
                                   watch);
  };
  return std::make_unique<CpuJudge>(request.problem, tools.library->code(), options, request.clock);
}

// KBEAM_CXX names another compiler for candidates and problems: clang++, or the path of one.
std::string compiler_command() {
  const char* const named = std::getenv("KBEAM_CXX");
  return named == nullptr || *named == '\0' ? "g++" : named;
}

// The device whose description ships; plans are made for it.
constexpr const char* kDeviceDescription = "h200.json";

Result<std::unique_ptr<Judge>> make_cuda_judge(const TargetRequest& request, TargetTools& tools,
                                               const std::filesystem::path& problem_module) {
  if (!std::filesystem::exists(request.home.worker))
    return Error{ErrorCode::unavailable, "judge for target cuda",
                 "there is no " + request.home.worker.string(),
                 "kbeam-worker is built where the CUDA toolkit is: install it and build again; "
                 "`kbeam doctor` says what else is missing"};
  CudaJudgeOptions options;
  options.worker = request.home.worker;
  options.planner.planner = request.home.planner;
  options.planner.device_description = request.home.devices / kDeviceDescription;
  options.problem_module = problem_module;
  if (!request.problem.cuda_code.empty()) {
    ASSIGN_OR_RETURN(options.problem_cuda_module,
                     tools.compiler->build_problem(request.problem.cuda_code));
  }
  options.task_folder = request.cache / "tasks";
  options.device = request.device;
  options.grade = request.grade;
  options.fixed_seed = request.fixed_key;
  options.screen_timeout_s = request.screen_timeout_s;
  options.give_up = request.give_up;
  options.sanitizer = find_cuda_tool("compute-sanitizer");
  options.say = request.say;
  return std::unique_ptr<Judge>(std::make_unique<CudaJudge>(request.problem, tools.library->code(),
                                                            std::move(options), request.clock));
}

}  // namespace

Result<TargetTools> open_target(const TargetRequest& request) {
  TargetTools tools;
  ASSIGN_OR_RETURN(tools.compiler,
                   Compiler::make({.contract_include = request.home.contract_include,
                                   .cache = request.cache,
                                   .command = compiler_command(),
                                   .idle_priority = request.builds_give_way,
                                   .cancelled = request.builds_cancelled}));
  ASSIGN_OR_RETURN(const std::filesystem::path module,
                   tools.compiler->build_problem(request.problem.code));
  ASSIGN_OR_RETURN(tools.library, ProblemLibrary::load(module));
  if (request.target == "cuda") {
    ASSIGN_OR_RETURN(tools.judge, make_cuda_judge(request, tools, module));
  } else {
    tools.judge = make_cpu_judge(request, tools);
  }
  return tools;
}

std::string target_of_file(const std::filesystem::path& file) {
  return file.extension() == ".cu" ? "cuda" : "cpu";
}

}  // namespace kbeam
