#include "target/cuda/seat_layout.h"

#include <fmt/core.h>
#include <kbeam/plan_abi.h>

#include <algorithm>

namespace kbeam {
namespace {

constexpr std::uint64_t kControlBytes = 2 * sizeof(std::uint64_t);
constexpr std::uint64_t kMostFigures = 1024;

bool is_own(BufferKind kind) {
  return kind == BufferKind::scratch || kind == BufferKind::zeroed_scratch ||
         kind == BufferKind::table;
}

int find_tensor_index(const SessionCase& the_case, const std::string& name) {
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i)
    if (the_case.tensors[i].name == name) return static_cast<int>(i);
  return -1;
}

std::string plan_mistake(const SessionCase& the_case, const LaunchPlan& plan, const char* what) {
  for (const PlanBuffer& buffer : plan.buffers) {
    if (is_own(buffer.kind) || buffer.kind == BufferKind::control ||
        buffer.kind == BufferKind::figures)
      continue;
    const int tensor = find_tensor_index(the_case, buffer.name);
    if (tensor < 0)
      return fmt::format("the {} uses a tensor '{}' that the case lacks", what, buffer.name);
    const std::int64_t bytes = the_case.tensors[static_cast<std::size_t>(tensor)].bytes();
    if (buffer.bytes != bytes)
      return fmt::format("the {} takes '{}' to have {} bytes, the case says {}", what, buffer.name,
                         buffer.bytes, bytes);
  }
  if (plan.figures.size() > kMostFigures)
    return fmt::format("the {} has more than {} figures", what, kMostFigures);
  return "";
}

}  // namespace

std::string CaseLayout::find_mistake(const SessionCase& the_case) {
  std::string mistake = plan_mistake(the_case, the_case.subject, "plan");
  for (const PlanBuffer& buffer : the_case.subject.buffers)
    if (buffer.kind == BufferKind::control || buffer.kind == BufferKind::figures)
      return "the plan asks for the judge's own buffers";
  const auto also = [&](const std::optional<LaunchPlan>& plan, const char* what) {
    if (mistake.empty() && plan) mistake = plan_mistake(the_case, *plan, what);
  };
  also(the_case.generate, "plan that generates");
  also(the_case.quick_check, "quick check");
  also(the_case.full_check, "full check");
  return mistake;
}

CaseLayout::CaseLayout(const SessionCase& the_case, CandidateMemory& candidate, JudgeMemory& judge)
    : case_(the_case) {
  for (const TensorShape& tensor : case_.tensors) {
    const auto bytes = static_cast<std::uint64_t>(tensor.bytes());
    tensors_.push_back(candidate.add(bytes));
    const CUdeviceptr copy = judge.place(bytes);
    pristine_.push_back(tensor.role == KBEAM_INPUT ? copy : 0);
    snapshot_.push_back(tensor.role == KBEAM_OUTPUT ? copy : 0);
  }
  for (std::size_t i = 0; i < case_.subject.buffers.size(); ++i) {
    const PlanBuffer& buffer = case_.subject.buffers[i];
    if (is_own(buffer.kind)) {
      own_.push_back(
          {static_cast<int>(i), candidate.add(static_cast<std::uint64_t>(buffer.bytes))});
      subject_.push_back(own_.back().memory.at);
    } else {
      const int tensor = find_tensor_index(case_, buffer.name);
      subject_.push_back(tensor < 0 ? 0 : tensors_[static_cast<std::size_t>(tensor)].at);
    }
  }
  control_ = judge.place(kControlBytes);
  figures_ = judge.place(kMostFigures * sizeof(std::uint64_t));
  for (const auto* plan : {&case_.generate, &case_.quick_check, &case_.full_check})
    if (*plan) place_plan(**plan, judge);
}

void CaseLayout::place_plan(const LaunchPlan& plan, JudgeMemory& judge) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i)
    if (is_own(plan.buffers[i].kind))
      judge_own_[{&plan, i}] = judge.place(static_cast<std::uint64_t>(plan.buffers[i].bytes));
}

std::vector<CUdeviceptr> CaseLayout::bind(const LaunchPlan& plan,
                                          const std::vector<CUdeviceptr>& tensors) const {
  std::vector<CUdeviceptr> addresses;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (buffer.kind == BufferKind::control) {
      addresses.push_back(control_);
    } else if (buffer.kind == BufferKind::figures) {
      addresses.push_back(figures_);
    } else if (is_own(buffer.kind)) {
      addresses.push_back(judge_own_.at({&plan, i}));
    } else {
      const int tensor = find_tensor_index(case_, buffer.name);
      addresses.push_back(tensor < 0 ? 0 : tensors[static_cast<std::size_t>(tensor)]);
    }
  }
  return addresses;
}

std::vector<CUdeviceptr> CaseLayout::bind_to_candidate(const LaunchPlan& plan) const {
  std::vector<CUdeviceptr> tensors;
  for (const GuardedBuffer& buffer : tensors_) tensors.push_back(buffer.at);
  return bind(plan, tensors);
}

std::vector<CUdeviceptr> CaseLayout::bind_to_judge(const LaunchPlan& plan) const {
  std::vector<CUdeviceptr> tensors;
  for (std::size_t i = 0; i < pristine_.size(); ++i)
    tensors.push_back(pristine_[i] != 0 ? pristine_[i] : snapshot_[i]);
  return bind(plan, tensors);
}

}  // namespace kbeam
