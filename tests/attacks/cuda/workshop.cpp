#include "attacks/cuda/workshop.h"

#include <string_view>

#include "base/files.h"
#include "problem/problem_file.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

constexpr char kDeed[] = "deed";

// A candidate is one text: `#include "x.h"` is replaced by the file of that name in `headers`,
// once.
Result<std::string> paste_headers(const fs::path& file, const fs::path& headers,
                                  std::map<fs::path, bool>& pasted) {
  ASSIGN_OR_RETURN(const std::string source, read_file(file));
  constexpr std::string_view kInclude = "#include \"";
  std::string text;
  std::size_t at = 0;
  while (at < source.size()) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = std::string_view(source).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(kInclude)) {
      text += line != "#pragma once" ? std::string(line) + "\n" : "\n";
      continue;
    }
    const fs::path header =
        headers / line.substr(kInclude.size(), line.rfind('"') - kInclude.size());
    if (std::exchange(pasted[header], true)) continue;
    ASSIGN_OR_RETURN(const std::string inner, paste_headers(header, headers, pasted));
    text += inner;
  }
  return text;
}

std::vector<Case> cases_with(const Problem& problem, int deed, bool timed) {
  std::vector<Case> cases;
  for (Case the_case : problem.cases) {
    if (the_case.timed != timed) continue;
    the_case.axes[kDeed] = deed;
    cases.push_back(std::move(the_case));
  }
  return cases;
}

CudaSubject subject_of(const std::string& id, const Artifact& artifact) {
  return {.id = id, .rows = {Row{}}, .modules = {artifact.module}, .kernels = {artifact.kernels}};
}

}  // namespace

Job job_of(const Attack& attack, const fs::path& folder) {
  return {.name = attack.name,
          .file = folder / "device" / (attack.name + ".cu"),
          .deed = 2,
          .stage = attack.stage,
          .reference = attack.reference,
          .pairs = attack.pairs,
          .call_timeout_s = attack.call_timeout_s,
          .plan_timeout_s = attack.plan_timeout_s,
          .plan_memory_bytes = attack.plan_memory_bytes};
}

Job twin_of(const Attack& attack, const fs::path& folder) {
  Job twin = job_of(attack, folder);
  twin.deed = 1;
  twin.name = attack.name + "-twin";
  if (!attack.twin.empty()) {
    twin.name = attack.twin;
    twin.file = folder / "honest" / (attack.twin + ".cu");
  }
  // That it has no gain either is not the question; that it is right is.
  twin.stage = attack.stage == How::plan ? How::plan : How::check;
  return twin;
}

Job job_of(const Honest& honest, const fs::path& folder) {
  return {.name = honest.name,
          .file = folder / "honest" / (honest.name + ".cu"),
          .stage = honest.stage};
}

Result<std::unique_ptr<Workshop>> Workshop::open(const WorkshopOptions& options) {
  std::unique_ptr<Workshop> shop(new Workshop(options));
  ASSIGN_OR_RETURN(LoadedProblem loaded, load_problem(shop->folder() / "problem"));
  if (!loaded.mistakes.empty())
    return Error{ErrorCode::bad_input, "read the problem of the device attacks",
                 render_mistakes(loaded.mistakes), "mend problem.toml"};
  shop->problem_ = std::move(loaded.problem);
  ASSIGN_OR_RETURN(shop->compiler_,
                   Compiler::make({.contract_include = options.source / "contract/include",
                                   .cache = options.cache,
                                   .march = "x86-64-v3"}));
  ASSIGN_OR_RETURN(shop->problem_module_, shop->compiler_->build_problem(shop->problem_.code));
  ASSIGN_OR_RETURN(shop->library_, ProblemLibrary::load(shop->problem_module_));
  return shop;
}

Result<Artifact> Workshop::build(const fs::path& file) {
  std::map<fs::path, bool> pasted;
  ASSIGN_OR_RETURN(const std::string source, paste_headers(file, folder(), pasted));
  return compiler_->build({.source = source,
                           .source_name = file.filename().string(),
                           .knobs = {},
                           .flags = problem_.compile_flags,
                           .link = {}});
}

// problem.cu, or a copy of it with one line changed.
Result<fs::path> Workshop::build_check(const Mutant* mutant) {
  if (mutant == nullptr) return compiler_->build_problem(problem_.cuda_code);
  ASSIGN_OR_RETURN(std::string text, read_file(problem_.cuda_code));
  const std::size_t at = text.find(mutant->find);
  if (at == std::string::npos || text.find(mutant->find, at + 1) != std::string::npos)
    return Error{ErrorCode::bad_input, "make the mutant " + mutant->name,
                 "its text is not in problem.cu exactly once", "correct attacks.toml"};
  text.replace(at, mutant->find.size(), mutant->replace);
  ASSIGN_OR_RETURN(const fs::path copy, make_temporary_folder(options_.cache, "mutant-"));
  RETURN_IF_ERROR(write_file(copy / "problem.cu", text));
  auto module = compiler_->build_problem(copy / "problem.cu");
  std::error_code ignored;
  fs::remove_all(copy, ignored);
  return module;
}

Result<CudaSubject> Workshop::reference_of(const Job& job) {
  const fs::path file = job.stage == How::gain ? folder() / "references" / (job.reference + ".cu")
                                               : problem_.baselines.front().source;
  ASSIGN_OR_RETURN(const Artifact artifact, build(file));
  if (artifact.verdict != Verdict::accepted)
    return Error{ErrorCode::internal, "build the reference " + file.string(), artifact.reason,
                 "correct it"};
  return subject_of(file.stem().string(), artifact);
}

Result<TaskRequest> Workshop::request_of(const Job& job, const CudaSubject& candidate) {
  TaskRequest request;
  request.problem = &problem_;
  request.code = &library_->code();
  request.planner = {.planner = options_.planner,
                     .device_description = options_.source / "contract/devices/h200.json",
                     .timeout_s = job.plan_timeout_s,
                     .memory_bytes = static_cast<std::int64_t>(job.plan_memory_bytes)};
  request.candidate = candidate;
  const bool times = job.stage == How::compare || job.stage == How::gain;
  request.kind = times ? TaskKind::compare : TaskKind::check;
  if (times) {
    ASSIGN_OR_RETURN(request.reference, reference_of(job));
    request.timed_cases = cases_with(problem_, job.deed, true);
  }
  if (job.stage != How::gain) request.check_cases = cases_with(problem_, job.deed, false);
  request.problem_module = problem_module_;
  ASSIGN_OR_RETURN(request.problem_cuda_module, build_check(job.mutant));
  request.most_host_elements = 0;
  request.grade = problem_.grades.front().name;
  request.rule = {.name = "attacks", .pairs_per_process = job.pairs, .processes = 1};
  request.call_timeout_s = job.call_timeout_s;
  return request;
}

Result<Trial> Workshop::prepare(const Job& job, const fs::path& tasks) {
  ASSIGN_OR_RETURN(const Artifact artifact, build(job.file));
  if (artifact.verdict != Verdict::accepted)
    return Trial{"", {std::string(to_string(artifact.verdict)), artifact.reason}};
  ASSIGN_OR_RETURN(const TaskRequest request, request_of(job, subject_of(job.name, artifact)));
  ASSIGN_OR_RETURN(const fs::path images, make_temporary_folder(options_.cache, "images-"));
  auto trial = [&]() -> Result<Trial> {
    ASSIGN_OR_RETURN(const AssembledTask made, assemble_task(request, images));
    if (made.refused)
      return Trial{"", {std::string(to_string(made.refused->verdict)), made.refused->reason}};
    if (job.stage == How::plan) return Trial{"", {"accepted", ""}};
    RETURN_IF_ERROR(write_task_folder(made.task, made.files, tasks / job.name));
    return Trial{job.name, {}};
  }();
  std::error_code ignored;
  fs::remove_all(images, ignored);
  return trial;
}

}  // namespace kbeam::device_attacks
