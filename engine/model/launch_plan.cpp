// What a launch plan says about itself. Its JSON form is in launch_plan_json.cpp, which the planner
// process shares.
#include "model/launch_plan.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/hash.h"

namespace kbeam {
namespace {

constexpr std::size_t kLongestMangledName = 4096;  // the demangler recurses over its text

// nvcc names file-local things after their file: "_INTERNAL_1a2b3c4d_12_candidate_cu_5d6e7f80::".
std::string without_file_names(std::string name) {
  for (const std::string_view prefix : {"_INTERNAL_", "__nv_static_"})
    for (std::size_t begin = name.find(prefix); begin != std::string::npos;
         begin = name.find(prefix, begin)) {
      std::size_t end = begin;
      while (end < name.size() &&
             (std::isalnum(static_cast<unsigned char>(name[end])) != 0 || name[end] == '_'))
        ++end;
      if (name.compare(end, 2, "::") == 0) end += 2;
      name.erase(begin, end - begin);
    }
  return name;
}

}  // namespace

bool LaunchPlan::uses_library() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const PlanNode& node) {
    return node.kind == NodeKind::gemm || node.kind == NodeKind::vendor_call;
  });
}

std::int64_t LaunchPlan::scratch_bytes() const {
  std::int64_t bytes = 0;
  for (const PlanBuffer& buffer : buffers)
    if (buffer.kind == BufferKind::scratch || buffer.kind == BufferKind::zeroed_scratch)
      bytes += buffer.bytes;
  return bytes;
}

std::string launch_plan_hash(const LaunchPlan& plan) {
  return sha256_hex(to_json(plan).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string readable_kernel_name(const std::string& mangled) {
  if (mangled.size() > kLongestMangledName) return mangled;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return without_file_names(status == 0 && demangled ? demangled.get() : mangled);
}

}  // namespace kbeam
