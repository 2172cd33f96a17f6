// Commands in the order in which a candidate meets them: load, plan, lay out, call.
#include "runner/candidate_host.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/defence.h"
#include "runner/fault_report.h"

namespace kbeam::runner {
namespace {

using control::Command;
using control::Extent;
using control::Region;
using control::Status;

constexpr std::size_t kPage = 4096;
constexpr char kEntryName[] = "kbeam_candidate_plan";
constexpr int kPopulateRead =
    22;  // MADV_POPULATE_*: Linux 5.14; older kernels fault pages in at first use
constexpr int kPopulateWrite = 23;

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::string name_of(const char (&name)[control::kNameBytes]) {
  return std::string(name, strnlen(name, control::kNameBytes));
}

}  // namespace

int input_access() {
  return defence_is_on(Defence::read_only_inputs) ? PROT_READ : PROT_READ | PROT_WRITE;
}

int outside_access() {
  return defence_is_on(Defence::page_protection) ? PROT_NONE : PROT_READ | PROT_WRITE;
}

CandidateHost::CandidateHost(control::Page& page, HostMemory memory, WorkerTeam& team)
    : page_(page), memory_(memory), team_(team) {
  watch_region({Region::inputs, memory_.inputs, page_.settings.input_bytes});
  watch_region({Region::outputs, memory_.outputs, page_.settings.output_bytes});
  watch_region({Region::scratch, memory_.scratch - kScratchGuard,
                page_.settings.scratch_bytes + 2 * kScratchGuard});
}

bool CandidateHost::load() {
  const char* path = page_.settings.module_paths;
  for (std::int32_t module = 0; module < page_.settings.module_count; ++module) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = dlerror();
      say(why == nullptr ? "dlopen failed" : why);
      return false;
    }
    auto* entry = reinterpret_cast<kbeam_plan_function*>(dlsym(handle, kEntryName));
    if (entry == nullptr) {
      say(std::string("no KBEAM_PLAN in ") + path);
      return false;
    }
    modules_.push_back(entry);
    path += std::strlen(path) + 1;
  }
  return true;
}

void CandidateHost::serve(const control::Request& request) {
  Status status = Status::confused;
  switch (request.command) {
    case Command::plan:
      status = plan(request);
      break;
    case Command::lay_out:
      status = lay_out(request);
      break;
    case Command::call:
      status = call(request);
      break;
    case Command::empty_call:
      if (team_.workers() > 1) team_.run([](int) {});
      status = Status::done;
      break;
    case Command::none:
    case Command::load:
      break;
  }
  page_.reply.status = status;
  page_.reply.sequence = request.sequence;
}

PlanShape CandidateHost::read_shape(const control::Request& request) const {
  PlanShape shape;
  for (std::size_t index = 0;
       index < std::min<std::size_t>(request.tensor_count, control::kMaxTensors); ++index) {
    const control::Tensor& wire = page_.tensors[index];
    PlanTensor tensor;
    tensor.name = name_of(wire.name);
    tensor.role = static_cast<kbeam_role>(wire.role);
    tensor.type = static_cast<kbeam_element_type>(wire.type);
    tensor.rank = wire.rank;
    std::copy(std::begin(wire.dim), std::end(wire.dim), tensor.dim);
    std::copy(std::begin(wire.stride), std::end(wire.stride), tensor.stride);
    shape.tensors.push_back(std::move(tensor));
  }
  for (std::size_t index = 0; index < std::min<std::size_t>(request.axis_count, control::kMaxAxes);
       ++index)
    shape.axes[name_of(page_.axes[index].name)] = page_.axes[index].value;
  return shape;
}

Status CandidateHost::plan(const control::Request& request) {
  if (request.row >= modules_.size()) {
    say("there is no such row");
    return Status::confused;
  }
  const PlanShape shape = read_shape(request);
  CpuPlan first = CpuPlan::record(modules_[request.row], shape, team_.workers());
  if (!first.error().empty()) {
    say(first.error());
    return first.not_supported() ? Status::not_supported : Status::bad_plan;
  }
  const CpuPlan second = CpuPlan::record(modules_[request.row], shape, team_.workers());
  if (const std::string difference = first.difference(second);
      !difference.empty() && defence_is_on(Defence::plan_twice)) {
    say("the plan function described one shape in two ways: " + difference);
    return Status::bad_plan;
  }
  const auto scratch_bytes = static_cast<std::size_t>(first.scratch_bytes());
  if (scratch_bytes > page_.settings.scratch_bytes || !grow_scratch(scratch_bytes)) {
    say("the plan asks for " + std::to_string(scratch_bytes) + " bytes of scratch; the limit is " +
        std::to_string(page_.settings.scratch_bytes) + " and the memory limit counts too");
    return Status::over_memory;
  }
  write_notes(first);
  page_.reply.scratch_bytes = first.scratch_bytes();
  page_.reply.plan_id = static_cast<std::uint32_t>(plans_.size());
  plans_.push_back({std::move(first), shape.tensors.size()});
  return Status::done;
}

void CandidateHost::write_notes(const CpuPlan& plan) {
  std::size_t at = 0;
  std::uint32_t count = 0;
  for (const auto& [key, value] : plan.notes()) {
    if (at + key.size() + value.size() + 2 > control::kNotesBytes) break;
    std::memcpy(page_.reply.notes + at, key.c_str(), key.size() + 1);
    std::memcpy(page_.reply.notes + at + key.size() + 1, value.c_str(), value.size() + 1);
    at += key.size() + value.size() + 2;
    ++count;
  }
  page_.reply.note_count = count;
}

// At the end of the region, so that a step past the end faults.
bool CandidateHost::grow_scratch(std::size_t bytes) {
  const std::size_t whole = round_up(bytes, kPage);
  if (whole <= scratch_bytes_) return true;
  std::byte* const begin = scratch_end() - whole;
  if (mprotect(begin, whole, PROT_READ | PROT_WRITE) != 0) return false;
  madvise(begin, whole, kPopulateWrite);
  scratch_bytes_ = whole;
  return true;
}

Status CandidateHost::lay_out(const control::Request& request) {
  const std::size_t count = std::size_t{request.slot_count} * request.tensor_count;
  if (request.tensor_count > control::kMaxTensors || count > control::kMaxExtents)
    return Status::confused;
  if (defence_is_on(Defence::page_protection)) {
    mprotect(memory_.inputs, page_.settings.input_bytes, PROT_NONE);
    mprotect(memory_.outputs, page_.settings.output_bytes, PROT_NONE);
  }
  slots_.assign(request.slot_count, {});
  slot_tensors_ = request.tensor_count;
  for (std::size_t index = 0; index < count; ++index) {
    const Extent& extent = page_.extents[index];
    const bool is_output = extent.region == Region::outputs;
    std::byte* base = is_output ? memory_.outputs : memory_.inputs;
    if (mprotect(base + extent.begin, extent.bytes,
                 is_output ? PROT_READ | PROT_WRITE : input_access()) != 0) {
      say("mprotect failed");
      return Status::confused;
    }
    madvise(base + extent.begin, extent.bytes, is_output ? kPopulateWrite : kPopulateRead);
    slots_[index / slot_tensors_][index % slot_tensors_] = base + extent.tensor_begin;
  }
  return Status::done;
}

Status CandidateHost::call(const control::Request& request) {
  if (request.plan_id >= plans_.size() || request.slot >= slots_.size() ||
      plans_[request.plan_id].tensors != slot_tensors_) {
    say("the plan or the slot of this call does not exist");
    return Status::confused;
  }
  const CpuPlan& plan = plans_[request.plan_id].plan;
  plan.execute(std::span(slots_[request.slot].data(), slot_tensors_),
               scratch_end() - plan.scratch_bytes(), team_);
  return Status::done;
}

void CandidateHost::say(const std::string& text) {
  const std::size_t length = std::min(text.size(), control::kTextBytes - 1);
  std::memcpy(page_.reply.text, text.data(), length);
  page_.reply.text[length] = '\0';
}

}  // namespace kbeam::runner
