// For one problem folder: its files are valid, its check accepts known_good/, sketches/ and
// baselines/ on every case, and rejects each file of known_wrong/ with the verdict of its first
// line, `// expect: VERDICT`. Candidates run in this process; sandbox and clock are tested
// elsewhere.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/cpu_plan.h>
#include <kbeam/problem.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "problem/problem_file.h"
#include "problem/problem_library.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = KBEAM_PROBLEM_FOLDER;
const fs::path kModules = KBEAM_MODULE_FOLDER;

struct FirstFailure : CheckSink {
  std::string verdict = "accepted";
  std::string sentence;
  void figure(std::string_view name, double value, double limit, std::string_view unit,
              std::string_view where) override {
    if (value <= limit || verdict != "accepted") return;
    verdict = "wrong_value";
    sentence = std::string(name) + " " + std::to_string(value) + " > " + std::to_string(limit) +
               " " + std::string(unit) + " at " + std::string(where);
  }
  void reject(CheckFailure failure, std::string_view where, double found, double expected,
              std::string_view words) override {
    if (verdict != "accepted") return;
    verdict = failure == CheckFailure::not_finite ? "not_finite" : "wrong_value";
    sentence = std::string(where) + ": found " + std::to_string(found) + ", expected " +
               std::to_string(expected) + "; " + std::string(words);
  }
};

// The tensors of one case with memory of their own.
class CaseMemory {
 public:
  explicit CaseMemory(const Problem& problem, const Case& the_case)
      : shapes_(tensor_shapes(problem, the_case.axes)) {
    shape_.axes = the_case.axes;
    for (const TensorShape& shape : shapes_) {
      memory_.emplace_back(new char[static_cast<std::size_t>(shape.bytes()) + 64]);
      TensorView view{.name = shape.name, .type = shape.type};
      PlanTensor tensor{.name = shape.name, .role = shape.role, .type = shape.type};
      view.rank = tensor.rank = static_cast<int>(shape.dims.size());
      for (std::size_t axis = 0; axis < shape.dims.size(); ++axis) {
        view.dim[axis] = tensor.dim[axis] = shape.dims[axis];
        view.stride[axis] = tensor.stride[axis] = shape.strides[axis];
      }
      view.elements = shape.elements();
      const auto address = reinterpret_cast<std::uintptr_t>(memory_.back().get());
      view.data = reinterpret_cast<void*>((address + 63) / 64 * 64);
      (shape.role == KBEAM_INPUT ? inputs : outputs).push_back(view);
      pointers_.push_back(view.data);
      shape_.tensors.push_back(tensor);
    }
  }

  std::string run(kbeam_plan_function* function) {
    for (const TensorView& view : outputs)
      std::memset(view.data, 0xff, static_cast<std::size_t>(view.bytes()));
    const CpuPlan plan = CpuPlan::record(function, shape_, 1);
    if (!plan.error().empty()) return plan.error();
    std::vector<char> scratch(static_cast<std::size_t>(plan.scratch_bytes()) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    WorkerTeam team(1);
    plan.execute(pointers_, reinterpret_cast<void*>((address + 63) / 64 * 64), team);
    return "";
  }

  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;

 private:
  std::vector<TensorShape> shapes_;
  std::vector<std::unique_ptr<char[]>> memory_;
  std::vector<void*> pointers_;
  PlanShape shape_;
};

struct Fixture {
  LoadedProblem loaded;
  std::unique_ptr<ProblemLibrary> library;

  static Fixture& get() {
    static Fixture fixture;
    return fixture;
  }

 private:
  Fixture() {
    Result<LoadedProblem> problem = load_problem(kFolder);
    if (problem.ok()) {
      loaded = std::move(*problem);
      loaded.problem = for_target(loaded.problem, "cpu");
    }
    Result<std::unique_ptr<ProblemLibrary>> made = ProblemLibrary::load(kModules / "problem.so");
    if (made.ok()) library = std::move(*made);
  }
};

// The verdict over all cases: that of the first case that is not accepted.
FirstFailure judge(const fs::path& module) {
  FirstFailure verdict;
  void* handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* function =
      handle == nullptr
          ? nullptr
          : reinterpret_cast<kbeam_plan_function*>(dlsym(handle, "kbeam_candidate_plan"));
  if (function == nullptr) {
    verdict.verdict = "cannot be loaded";
    verdict.sentence = module.string();
    return verdict;
  }
  ProblemCode& code = Fixture::get().library->code();
  const Problem& problem = Fixture::get().loaded.problem;
  for (const Case& the_case : problem.cases) {
    const CaseAdapter view(the_case);
    CaseMemory base(problem, the_case);
    CaseMemory fresh(problem, the_case);
    code.generate(view, 11, base.inputs);
    code.freshen(view, 12, base.inputs, fresh.inputs);
    const std::string error = fresh.run(function);
    if (!error.empty()) {
      verdict.verdict = "bad_plan";
      verdict.sentence = error;
    } else {
      code.check(view, {CheckDepth::full, problem.grades.front().name, 13}, fresh.inputs,
                 fresh.outputs, verdict);
    }
    if (verdict.verdict != "accepted") {
      verdict.sentence = "case " + the_case.name + ": " + verdict.sentence;
      break;
    }
  }
  dlclose(handle);
  return verdict;
}

std::vector<std::string> candidates_in(const std::string& subfolder) {
  std::vector<std::string> names;
  if (!fs::is_directory(kFolder / subfolder)) return names;
  for (const auto& entry : fs::directory_iterator(kFolder / subfolder))
    if (entry.path().extension() == ".cpp")
      names.push_back(subfolder + "/" + entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

fs::path module_of(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return kModules / (name + ".so");
}

TEST(ProblemFolder, LoadsWithoutMistakes) {
  const Fixture& fixture = Fixture::get();
  EXPECT_EQ(render_mistakes(fixture.loaded.mistakes), "");
  ASSERT_NE(fixture.library, nullptr);
  EXPECT_FALSE(candidates_in("known_good").empty());
  EXPECT_FALSE(candidates_in("known_wrong").empty());
}

TEST(ProblemFolder, AcceptsHonestCandidates) {
  for (const char* subfolder : {"known_good", "sketches", "baselines"}) {
    for (const std::string& name : candidates_in(subfolder)) {
      const FirstFailure verdict = judge(module_of(name));
      EXPECT_EQ(verdict.verdict, "accepted") << name << ": " << verdict.sentence;
    }
  }
}

TEST(ProblemFolder, RejectsWrongCandidatesForTheStatedReason) {
  for (const std::string& name : candidates_in("known_wrong")) {
    std::string first_line;
    std::ifstream file(kFolder / (name + ".cpp"));
    std::getline(file, first_line);
    const std::string prefix = "// expect: ";
    ASSERT_EQ(first_line.substr(0, prefix.size()), prefix) << name;
    std::string second_line;
    std::getline(file, second_line);
    if (second_line == "// needs: sandbox") continue;  // told apart by the real runner: tests/e2e
    const FirstFailure verdict = judge(module_of(name));
    EXPECT_EQ(verdict.verdict, first_line.substr(prefix.size()))
        << name << ": " << verdict.sentence;
  }
}

TEST(ProblemFolder, RejectsUntouchedOutputs) {
  ProblemCode& code = Fixture::get().library->code();
  const Problem& problem = Fixture::get().loaded.problem;
  const Case the_case = problem.timed_cases().front();
  const CaseAdapter view(the_case);
  CaseMemory memory(problem, the_case);
  code.generate(view, 21, memory.inputs);
  for (const TensorView& output : memory.outputs)
    std::memset(output.data, 0xff, static_cast<std::size_t>(output.bytes()));
  FirstFailure verdict;
  code.check(view, {CheckDepth::quick, problem.grades.front().name, 22}, memory.inputs,
             memory.outputs, verdict);
  EXPECT_NE(verdict.verdict, "accepted");
}

TEST(ProblemFolder, SeedsAndKeysDecideTheInputs) {
  ProblemCode& code = Fixture::get().library->code();
  const Problem& problem = Fixture::get().loaded.problem;
  for (const Case& the_case : problem.timed_cases()) {
    const CaseAdapter view(the_case);
    CaseMemory one(problem, the_case), again(problem, the_case), fresh(problem, the_case);
    code.generate(view, 31, one.inputs);
    code.generate(view, 31, again.inputs);
    const auto bytes = [](const CaseMemory& memory) {
      return std::string_view(static_cast<const char*>(memory.inputs[0].data),
                              static_cast<std::size_t>(memory.inputs[0].bytes()));
    };
    EXPECT_TRUE(bytes(one) == bytes(again)) << the_case.name;
    code.freshen(view, 32, one.inputs, fresh.inputs);
    code.freshen(view, 33, one.inputs, again.inputs);
    EXPECT_FALSE(bytes(fresh) == bytes(one)) << the_case.name;
    EXPECT_FALSE(bytes(fresh) == bytes(again)) << the_case.name;
    EXPECT_GT(code.flops(view), 0);
    EXPECT_GT(code.bytes(view), 0);
  }
}

}  // namespace
}  // namespace kbeam
