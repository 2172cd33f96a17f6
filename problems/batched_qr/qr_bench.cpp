// Cases in memory, candidate modules and collected verdicts for the tests of this problem.
#include "qr_bench.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "problem/problem_file.h"
#include "problem/problem_library.h"

extern "C" kbeam::ProblemCode* kbeam_make_problem();

namespace kbeam::qr_test {
namespace {

namespace fs = std::filesystem;
constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();

std::string words_behind(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  std::string line;
  for (int lines = 0; lines < 2 && std::getline(stream, line); ++lines)
    if (line.rfind("// " + key + ": ", 0) == 0) return line.substr(key.size() + 5);
  return "";
}

}  // namespace

ProblemCode& problem_code() {
  static const std::unique_ptr<ProblemCode> code(kbeam_make_problem());
  return *code;
}

const Problem& whole_problem() {
  static const Problem loaded = [] {
    Result<LoadedProblem> result = load_problem(KBEAM_PROBLEM_FOLDER);
    if (!result.ok()) throw std::runtime_error("problem.toml cannot be read");
    if (!result->mistakes.empty()) throw std::runtime_error(render_mistakes(result->mistakes));
    return result->problem;
  }();
  return loaded;
}

const Problem& problem() {
  static const Problem seen = for_target(whole_problem(), "cpu");
  return seen;
}

Case make_case(std::int64_t batch, std::int64_t m, std::int64_t n, const std::string& family) {
  Case made{.name = family + " " + std::to_string(m) + " x " + std::to_string(n)};
  made.axes = {{"batch", batch}, {"m", m}, {"n", n}, {"k", std::min(m, n)}};
  made.family = family;
  return made;
}

CaseMemory::CaseMemory(const Case& the_case)
    : shapes_(tensor_shapes(problem(), the_case.axes)),
      axes_(the_case.axes),
      batch_(axes_.at("batch")),
      m_(axes_.at("m")),
      n_(axes_.at("n")) {
  a_.assign(static_cast<std::size_t>(batch_ * m_ * n_), 0);
  h_.assign(a_.size(), kPoison);
  tau_.assign(static_cast<std::size_t>(batch_ * std::min(m_, n_)), kPoison);
}

TensorView CaseMemory::view(const std::string& name) {
  for (const TensorShape& shape : shapes_) {
    if (shape.name != name) continue;
    TensorView made{
        .name = shape.name, .type = shape.type, .rank = static_cast<int>(shape.dims.size())};
    std::copy(shape.dims.begin(), shape.dims.end(), made.dim);
    std::copy(shape.strides.begin(), shape.strides.end(), made.stride);
    made.elements = shape.elements();
    made.data = name == "A" ? a_.data() : name == "H" ? h_.data() : tau_.data();
    return made;
  }
  throw std::invalid_argument("no tensor " + name);
}

std::vector<TensorView> CaseMemory::inputs() {
  return {view("A")};
}
std::vector<TensorView> CaseMemory::outputs() {
  return {view("H"), view("tau")};
}

void CaseMemory::run(kbeam_plan_function* function) {
  PlanShape shape;
  shape.axes = axes_;
  std::vector<void*> pointers;
  for (const TensorShape& from : shapes_) {
    PlanTensor tensor{.name = from.name, .role = from.role, .type = from.type};
    tensor.rank = static_cast<int>(from.dims.size());
    std::copy(from.dims.begin(), from.dims.end(), tensor.dim);
    std::copy(from.strides.begin(), from.strides.end(), tensor.stride);
    shape.tensors.push_back(tensor);
    pointers.push_back(view(from.name).data);
  }
  const CpuPlan plan = CpuPlan::record(function, shape, 1);
  if (!plan.error().empty()) throw std::runtime_error(plan.error());
  std::vector<char> scratch(static_cast<std::size_t>(plan.scratch_bytes()) + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  WorkerTeam team(1);
  plan.execute(pointers, reinterpret_cast<void*>((address + 63) / 64 * 64), team);
}

Candidate::Candidate(const std::string& name) {
  const fs::path source = fs::path(KBEAM_PROBLEM_FOLDER) / (name + ".cpp");
  expects_ = words_behind(source, "expect");
  needs_ = words_behind(source, "needs");
  std::string file = name + ".so";
  std::replace(file.begin(), file.end(), '/', '-');
  void* handle = dlopen((fs::path(KBEAM_MODULE_FOLDER) / file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(dlerror());
  plan_ = reinterpret_cast<kbeam_plan_function*>(dlsym(handle, "kbeam_candidate_plan"));
  if (plan_ == nullptr) throw std::runtime_error(file + " has no plan");
}

std::vector<std::string> candidates_in(const std::string& subfolder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(KBEAM_PROBLEM_FOLDER) / subfolder))
    if (entry.path().extension() == ".cpp")
      names.push_back(subfolder + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

void Judgement::figure(std::string_view name, double value, double limit, std::string_view unit,
                       std::string_view where) {
  figures.push_back({std::string(name), value, limit, std::string(unit), std::string(where)});
}

void Judgement::reject(CheckFailure failure, std::string_view where, double found, double expected,
                       std::string_view words) {
  rejection = failure == CheckFailure::not_finite ? "not_finite" : "wrong_value";
  sentence = std::string(where) + ": found " + std::to_string(found) + ", expected " +
             std::to_string(expected) + ": " + std::string(words);
}

std::string Judgement::verdict() const {
  if (!rejection.empty()) return rejection;
  const bool passed =
      std::all_of(figures.begin(), figures.end(), [](const CheckFigure& f) { return f.passed(); });
  return passed ? "accepted" : "wrong_value";
}

std::string Judgement::text() const {
  std::string all = verdict() + " " + sentence;
  for (const CheckFigure& f : figures)
    all += "; " + f.name + " " + std::to_string(f.value) + " of " + std::to_string(f.limit) + " " +
           f.unit + " (" + f.where + ")";
  return all;
}

double Judgement::worst_excess() const {
  double worst = 0;
  for (const CheckFigure& f : figures) worst = std::max(worst, f.value / f.limit);
  return worst;
}

double Judgement::value(std::string_view name) const {
  for (const CheckFigure& f : figures)
    if (f.name == name) return f.value;
  return std::numeric_limits<double>::quiet_NaN();
}

Judgement inspect(const Case& the_case, CaseMemory& memory, const Inspection& inspection) {
  Judgement judgement;
  problem_code().check(CaseAdapter(the_case),
                       {inspection.depth, inspection.grade, inspection.secret}, memory.inputs(),
                       memory.outputs(), judgement);
  return judgement;
}

CaseMemory run_case(const Case& the_case, kbeam_plan_function* function) {
  CaseMemory base(the_case);
  CaseMemory fresh(the_case);
  const CaseAdapter view(the_case);
  problem_code().generate(view, 11, base.inputs());
  problem_code().freshen(view, 12, base.inputs(), fresh.inputs());
  fresh.run(function);
  return fresh;
}

std::vector<Case> affordable_cases() {
  std::vector<Case> cases = problem().cases;
  for (Case& one : cases) {
    if (!one.timed) continue;
    const std::int64_t elements = one.axes.at("m") * one.axes.at("n");
    one.axes["batch"] = std::min(one.axes.at("batch"), std::max<std::int64_t>(1, 65536 / elements));
  }
  return cases;
}

}  // namespace kbeam::qr_test
