#include "target/cuda/host_problem.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <kbeam/problem.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kbeam {
namespace {

class SeatCaseView final : public CaseView {
 public:
  explicit SeatCaseView(const Case& the_case) : case_(the_case) {}
  std::string_view name() const override { return case_.name; }
  std::string_view family() const override { return case_.family; }
  // Thrown through problem.cpp, which is where the mistake is.
  std::int64_t axis(std::string_view name) const override {
    const auto found = case_.axes.find(std::string(name));
    if (found == case_.axes.end())
      throw std::out_of_range("problem.cpp asks for an axis that the case lacks: " +
                              std::string(name));
    return found->second;
  }

 private:
  const Case& case_;
};

class SeatSink final : public CheckSink {
 public:
  explicit SeatSink(CheckReport& report) : report_(report) {}
  void figure(std::string_view name, double value, double limit, std::string_view unit,
              std::string_view where) override {
    const CheckFigure figure{std::string(name), value, limit, std::string(unit),
                             std::string(where)};
    report_.figures.push_back(figure);
    if (!figure.passed())
      fail(
          std::isnan(value) ? Verdict::not_finite : Verdict::wrong_value,
          fmt::format("{}: {} is {:.4g} {}, the limit is {:.4g}", where, name, value, unit, limit));
  }
  void reject(CheckFailure failure, std::string_view where, double found, double expected,
              std::string_view sentence) override {
    said_something_ = true;
    fail(failure == CheckFailure::not_finite ? Verdict::not_finite : Verdict::wrong_value,
         fmt::format("{}: {} (found {:.9g}, expected {:.9g})", where, sentence, found, expected));
  }
  bool said_something() const { return said_something_ || !report_.figures.empty(); }

 private:
  void fail(Verdict verdict, std::string sentence) {
    if (report_.verdict != Verdict::accepted) return;  // the first failure explains best
    report_.verdict = verdict;
    report_.sentence = std::move(sentence);
  }
  CheckReport& report_;
  bool said_something_ = false;
};

TensorView view_of(const TensorShape& shape, std::vector<std::byte>& memory) {
  TensorView view;
  view.name = shape.name;
  view.type = shape.type;
  view.rank = static_cast<int>(shape.dims.size());
  for (std::size_t i = 0; i < shape.dims.size() && i < KBEAM_MAX_RANK; ++i) {
    view.dim[i] = shape.dims[i];
    view.stride[i] = shape.strides[i];
  }
  view.elements = shape.elements();
  view.data = memory.data();
  return view;
}

std::vector<TensorView> views_of(const std::vector<TensorShape>& shapes, kbeam_role role,
                                 HostTensors& memory) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (shapes[i].role == role) views.push_back(view_of(shapes[i], memory[i]));
  return views;
}

class LoadedHostProblem final : public HostProblem {
 public:
  explicit LoadedHostProblem(ProblemCode* code) : code_(code) {}

  HostTensors generate(const Case& the_case, const std::vector<TensorShape>& tensors,
                       std::uint64_t seed) override {
    HostTensors inputs(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].role == KBEAM_INPUT)
        inputs[i].resize(static_cast<std::size_t>(tensors[i].bytes()));
    code_->generate(SeatCaseView(the_case), seed, views_of(tensors, KBEAM_INPUT, inputs));
    return inputs;
  }

  CheckReport check(const Case& the_case, const std::vector<TensorShape>& tensors,
                    const HostCheck& request, HostTensors& inputs, HostTensors& outputs) override {
    CheckReport report;
    report.verdict = Verdict::accepted;
    report.outputs_checked = 1;
    SeatSink sink(report);
    const CheckRequest asked{request.quick ? CheckDepth::quick : CheckDepth::full, request.grade,
                             request.secret};
    code_->check(SeatCaseView(the_case), asked, views_of(tensors, KBEAM_INPUT, inputs),
                 views_of(tensors, KBEAM_OUTPUT, outputs), sink);
    if (!sink.said_something()) {
      report.verdict = Verdict::engine_failed;
      report.sentence =
          "the problem's check reported no figure; every check must report what it measured";
    }
    return report;
  }

 private:
  std::unique_ptr<ProblemCode> code_;  // its module stays loaded until the process ends
};

}  // namespace

Result<std::unique_ptr<HostProblem>> HostProblem::load(const std::filesystem::path& module) {
  const auto failed = [&](std::string happened) {
    return Error{ErrorCode::bad_input, "load the problem library " + module.string(),
                 std::move(happened), "build the problem again with the headers of this kbeam"};
  };
  void* library = ::dlopen(std::filesystem::absolute(module).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return failed(reason == nullptr ? "unknown" : reason);
  }
  const auto abi = reinterpret_cast<int (*)()>(::dlsym(library, "kbeam_problem_abi"));
  const auto make = reinterpret_cast<ProblemCode* (*)()>(::dlsym(library, "kbeam_make_problem"));
  if (abi == nullptr || make == nullptr) return failed("it exports no problem");
  if (abi() != kProblemAbi)
    return failed(fmt::format("it was built for version {} of kbeam/problem.h, this is version {}",
                              abi(), kProblemAbi));
  ProblemCode* code = make();
  if (code == nullptr) return failed("kbeam_make_problem returned nothing");
  return std::unique_ptr<HostProblem>(new LoadedHostProblem(code));
}

}  // namespace kbeam
