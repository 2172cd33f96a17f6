#include "problem/problem_library.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace kbeam {
namespace {

namespace fs = std::filesystem;

struct CloseModule {
  void operator()(void* module) const { ::dlclose(module); }
};
using Module = std::unique_ptr<void, CloseModule>;

class LoadedLibrary final : public ProblemLibrary {
 public:
  LoadedLibrary(Module module, std::unique_ptr<ProblemCode> code)
      : module_(std::move(module)), code_(std::move(code)) {}
  ProblemCode& code() override { return *code_; }

 private:
  Module module_;  // declared first: the code is destroyed before its module is unloaded
  std::unique_ptr<ProblemCode> code_;
};

Error load_error(const fs::path& module, std::string happened, std::string advice) {
  return {ErrorCode::bad_input, "load the problem library " + module.string(), std::move(happened),
          std::move(advice)};
}

template <typename Function>
Function* find_function(const Module& module, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(module.get(), name));
}

}  // namespace

Result<std::unique_ptr<ProblemLibrary>> ProblemLibrary::load(const fs::path& path) {
  Module module(::dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!module) {
    const char* reason = ::dlerror();
    return load_error(path, reason == nullptr ? "unknown" : reason,
                      "declare what problem.cpp uses, or define it there");
  }
  auto* abi = find_function<int()>(module, "kbeam_problem_abi");
  auto* make = find_function<ProblemCode*()>(module, "kbeam_make_problem");
  if (abi == nullptr || make == nullptr)
    return load_error(path, "it exports no problem",
                      "end problem.cpp with KBEAM_PROBLEM(YourClass)");
  if (const int found = abi(); found != kProblemAbi)
    return load_error(path,
                      "it was built for version " + std::to_string(found) +
                          " of kbeam/problem.h, this is version " + std::to_string(kProblemAbi),
                      "build it again with the headers of this kbeam");
  std::unique_ptr<ProblemCode> code(make());
  if (!code)
    return load_error(path, "kbeam_make_problem returned nothing", "use KBEAM_PROBLEM(YourClass)");
  return std::unique_ptr<ProblemLibrary>(new LoadedLibrary(std::move(module), std::move(code)));
}

std::string_view CaseAdapter::name() const {
  return case_.name;
}
std::string_view CaseAdapter::family() const {
  return case_.family;
}

// Thrown through problem.cpp, which is where the mistake is.
std::int64_t CaseAdapter::axis(std::string_view name) const {
  const auto found = case_.axes.find(std::string(name));
  if (found == case_.axes.end())
    throw std::out_of_range("problem.cpp asks for axis '" + std::string(name) +
                            "', which problem.toml does not declare");
  return found->second;
}

}  // namespace kbeam
