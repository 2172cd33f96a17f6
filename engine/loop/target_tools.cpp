#include "loop/target_tools.h"

#include "session/cpu_judge.h"

namespace kbeam {
namespace {

std::unique_ptr<Judge> make_cpu_judge(const TargetRequest& request, ProblemCode& code) {
  JudgeOptions options;
  options.runner = request.home.runner;
  options.candidate_cpus = request.candidate_cpus;
  options.grade = request.grade;
  options.seed = request.seed;
  options.fixed_key = request.fixed_key;
  options.screen_timeout_s = request.screen_timeout_s;
  options.give_up = request.give_up;
  options.on_lock_wait = request.on_lock_wait;
  return std::make_unique<CpuJudge>(request.problem, code, options, request.clock);
}

}  // namespace

Result<TargetTools> open_target(const TargetRequest& request) {
  TargetTools tools;
  ASSIGN_OR_RETURN(tools.compiler,
                   Compiler::make({.contract_include = request.home.contract_include,
                                   .cache = request.cache,
                                   .idle_priority = request.builds_give_way,
                                   .cancelled = request.builds_cancelled}));
  ASSIGN_OR_RETURN(const std::filesystem::path module,
                   tools.compiler->build_problem(request.problem.code));
  ASSIGN_OR_RETURN(tools.library, ProblemLibrary::load(module));
  tools.judge = make_cpu_judge(request, tools.library->code());
  return tools;
}

std::string target_of_file(const std::filesystem::path& file) {
  return file.extension() == ".cu" ? "cuda" : "cpu";
}

}  // namespace kbeam
