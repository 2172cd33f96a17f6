// A compiled problem.cpp, loaded into the judge. Trusted code: it comes from the user, not from a
// proposer.
#pragma once

#include <kbeam/problem.h>

#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"
#include "model/problem.h"

namespace kbeam {

class ProblemLibrary {
 public:
  // `module` is problem.cpp as a shared object (engine/build makes it).
  static Result<std::unique_ptr<ProblemLibrary>> load(const std::filesystem::path& module);
  virtual ~ProblemLibrary() = default;
  virtual ProblemCode& code() = 0;
};

// A Case as problem code sees it.
class CaseAdapter final : public CaseView {
 public:
  explicit CaseAdapter(const Case& the_case) : case_(the_case) {}
  std::string_view name() const override;
  std::string_view family() const override;
  std::int64_t axis(std::string_view name) const override;

 private:
  const Case& case_;
};

}  // namespace kbeam
