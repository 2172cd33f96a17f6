// Base inputs of cases, generated once a (case, seed) and kept: every call gets a freshened copy of
// one of them.
#pragma once

#include <kbeam/problem.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/problem.h"

namespace kbeam {

class InputBank {
 public:
  InputBank(const Problem& problem, ProblemCode& code) : problem_(problem), code_(code) {}

  std::span<const TensorView> inputs_for(const Case& the_case, std::uint64_t seed);
  void forget(std::uint64_t seed);  // frees what was generated for it

 private:
  struct AlignedFree {
    void operator()(void* memory) const;
  };
  struct Entry {
    std::vector<std::unique_ptr<void, AlignedFree>> memory;
    std::vector<TensorShape> shapes;  // owns the names that the views point to
    std::vector<TensorView> views;
  };
  const Problem& problem_;
  ProblemCode& code_;
  std::map<std::pair<std::string, std::uint64_t>, Entry> entries_;
};

// A view of `shape` at `data`. The shape must outlive it: the view points to its name.
TensorView make_view(const TensorShape& shape, void* data);

}  // namespace kbeam
