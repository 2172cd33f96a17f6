#include "target/cuda/seat_session.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/defence.h"
#include "base/files.h"
#include "target/cuda/plan_indices.h"

namespace kbeam {
namespace {

bool calls_vendor(const LaunchPlan& plan) {
  return std::ranges::any_of(
      plan.nodes, [](const PlanNode& node) { return node.kind == NodeKind::vendor_call; });
}

std::string driver_text(const Driver& cuda) {
  if (const auto version = read_file("/sys/module/nvidia/version"); version.ok())
    return version->substr(0, version->find('\n'));
  int version = 0;
  DRIVER(cuda, cuDriverGetVersion, &version);
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

SeatSession::SeatSession(const Driver& cuda, SessionSetup setup)
    : cuda_(cuda), setup_(std::move(setup)) {
  DRIVER(cuda_, cuInit, 0);
  DRIVER(cuda_, cuDeviceGet, &device_, 0);
  DRIVER(cuda_, cuDevicePrimaryCtxRetain, &context_, device_);
  DRIVER(cuda_, cuCtxSetCurrent, context_);
  DRIVER(cuda_, cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  DRIVER(cuda_, cuEventCreate, &begin_, CU_EVENT_DEFAULT);
  DRIVER(cuda_, cuEventCreate, &end_, CU_EVENT_DEFAULT);
  kernels_ = std::make_unique<SeatKernels>(cuda_, stream_, setup_.trusted_image);
  candidate_ = std::make_unique<CandidateMemory>(cuda_, device_, setup_.memory);
  judge_ = std::make_unique<JudgeMemory>(cuda_, device_, setup_.memory);
  if (setup_.memory == MemoryMode::guarded)
    cold_ = std::make_unique<ColdCache>(cuda_, device_, *kernels_);
  check_plans();
  restart_judge_memory();
  judge_->commit();
}

SeatSession::~SeatSession() {
  // The pieces go in order; what the context holds beyond them ends with the process.
  prepared_.clear();
  trusted_images_.clear();
  library_.reset();
}

int SeatSession::attribute(CUdevice_attribute which) const {
  int value = 0;
  DRIVER(cuda_, cuDeviceGetAttribute, &value, which, device_);
  return value;
}

SeatDevice SeatSession::describe() const {
  SeatDevice facts;
  char name[256] = "";
  CUuuid uuid{};
  DRIVER(cuda_, cuDeviceGetName, name, sizeof(name), device_);
  DRIVER(cuda_, cuDeviceGetUuid, &uuid, device_);
  facts.name = name;
  facts.uuid = uuid_text(uuid);
  facts.driver = driver_text(cuda_);
  facts.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.architecture = 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                       attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0)
    facts.weaknesses.push_back(
        "kernels can reach the pageable memory of their process on this machine (HMM or ATS)");
  if (setup_.memory == MemoryMode::plain)
    facts.weaknesses.push_back("plain memory: no guard zones, the judge's memory stays mapped");
  return facts;
}

void SeatSession::check_plans() {
  std::map<std::string, std::vector<const SessionCase*>> by_image;
  bool needs_library = false;
  for (const SessionCase& the_case : setup_.cases) {
    const auto refuse = [&](const std::string& mistake) {
      if (!mistake.empty())
        throw SeatRefusal(Verdict::bad_plan, the_case.the_case.name + ": " + mistake);
    };
    refuse(find_index_mistake(the_case.subject));
    refuse(CaseLayout::find_mistake(the_case));
    for (const auto* plan : {&the_case.generate, &the_case.quick_check, &the_case.full_check})
      if (*plan)
        if (const std::string mistake = find_index_mistake(**plan); !mistake.empty())
          throw SeatRefusal(Verdict::engine_failed,
                            the_case.the_case.name + ": a plan of the problem: " + mistake);
    if (the_case.subject.uses_library()) {
      if (!setup_.may_use_libraries && calls_vendor(the_case.subject))
        refuse("the plan calls a vendor's routine, which this subject may not");
      needs_library = true;
    }
    if (!the_case.subject.image_hash.empty())
      by_image[the_case.subject.image_hash].push_back(&the_case);
  }
  if (needs_library) {
    auto loaded = LibraryNodes::load(cuda_, stream_);
    if (!loaded.ok()) throw SeatRefusal(Verdict::engine_failed, loaded.error().text());
    library_ = std::move(loaded).value();
  }
  for (const auto& [hash, cases] : by_image) {
    const auto bytes = setup_.images.find(hash);
    if (bytes == setup_.images.end())
      throw SeatRefusal(Verdict::engine_failed, "the image " + hash + " of a plan is missing");
    on_behalf_of_candidate("load the kernels", [&, &cases = cases] {
      LoadedImage image(cuda_, bytes->second);
      for (const SessionCase* the_case : cases)
        if (const auto mistakes = image.find_mistakes(the_case->subject, device_);
            !mistakes.empty())
          throw SeatRefusal(Verdict::bad_plan, the_case->the_case.name + ": " + mistakes.front());
      for (const SessionCase* the_case : cases)
        if (image.local_bytes(the_case->subject) + kStackBytes > SeatKernels::kMostLocalBytes)
          throw SeatRefusal(
              Verdict::bad_plan,
              fmt::format("{}: a kernel has more than {} bytes of local memory a thread",
                          the_case->the_case.name, SeatKernels::kMostLocalBytes - kStackBytes));
    });
  }
}

ReplayContext SeatSession::judge_context() const {
  return {cuda_, context_, stream_, *kernels_, nullptr, true};
}
ReplayContext SeatSession::subject_context() const {
  return {cuda_, context_, stream_, *kernels_, library_.get(), false};
}

LoadedImage* SeatSession::trusted_image(const LaunchPlan& plan) {
  if (plan.image_hash.empty()) return nullptr;
  auto& image = trusted_images_[plan.image_hash];
  if (!image) {
    const auto bytes = setup_.images.find(plan.image_hash);
    if (bytes == setup_.images.end())
      throw SeatRefusal(Verdict::engine_failed,
                        "the image " + plan.image_hash + " of the problem is missing");
    image = std::make_unique<LoadedImage>(cuda_, bytes->second);
  }
  return image.get();
}

void SeatSession::Prepared::clear() {
  for (auto* replay : {&full, &quick, &generate_judge, &generate_candidate, &subject})
    replay->reset();
  image.reset();
  layout.reset();
  the_case = nullptr;
  fresh = false;
  tables_filled = false;
  local_bytes = 0;
  host_inputs.clear();
}

void SeatSession::forget_case() {
  prepared_.clear();
  candidate_->clear();
  restart_judge_memory();
}

void SeatSession::restart_judge_memory() {
  judge_->clear();
  kernels_->use_findings(judge_->place(SeatKernels::kFindingBytes));
  if (cold_) cold_->use(judge_->place(cold_->bytes()));
}

void SeatSession::prepare(const std::string& case_name) {
  if (prepared_.the_case != nullptr && prepared_.the_case->the_case.name == case_name) return;
  const auto found =
      std::find_if(setup_.cases.begin(), setup_.cases.end(),
                   [&](const SessionCase& each) { return each.the_case.name == case_name; });
  if (found == setup_.cases.end())
    throw SeatRefusal(Verdict::engine_failed, "the seat has no case '" + case_name + "'");
  drain();
  forget_case();
  try {
    build_case(*found);
  } catch (...) {
    forget_case();
    judge_->commit();
    throw;
  }
}

void SeatSession::build_case(const SessionCase& the_case) {
  prepared_.the_case = nullptr;
  on_behalf_of_candidate("allocate the buffers of " + the_case.the_case.name, [&] {
    prepared_.layout = std::make_unique<CaseLayout>(the_case, *candidate_, *judge_);
  });
  judge_->commit();
  if (library_)
    library_->begin_case([this](std::uint64_t bytes) { return candidate_->add(bytes).at; });
  const CaseLayout& layout = *prepared_.layout;
  prepared_.generate_candidate = judge_replay(the_case.generate, layout, true);
  prepared_.generate_judge = judge_replay(the_case.generate, layout, false);
  prepared_.quick = judge_replay(the_case.quick_check, layout, false);
  prepared_.full = judge_replay(the_case.full_check, layout, false);
  on_behalf_of_candidate("build the graph of " + the_case.the_case.name, [&] {
    if (!the_case.subject.image_hash.empty())
      prepared_.image =
          std::make_unique<LoadedImage>(cuda_, setup_.images.at(the_case.subject.image_hash));
    prepared_.subject = std::make_unique<GraphReplay>(subject_context(), the_case.subject,
                                                      layout.subject(), prepared_.image.get());
    if (prepared_.image) prepared_.local_bytes = prepared_.image->local_bytes(the_case.subject);
    if (!defence_is_on(Defence::end_of_all_work)) prepared_.subject->mark_last_node(end_);
    prepared_.subject->build();
  });
  prepared_.fresh = true;
  prepared_.the_case = &the_case;
}

std::unique_ptr<GraphReplay> SeatSession::judge_replay(const std::optional<LaunchPlan>& plan,
                                                       const CaseLayout& layout,
                                                       bool on_candidate) {
  if (!plan) return nullptr;
  auto addresses = on_candidate ? layout.bind_to_candidate(*plan) : layout.bind_to_judge(*plan);
  for (std::size_t i = 0; i < plan->buffers.size(); ++i)
    if (plan->buffers[i].kind == BufferKind::table)
      upload(cuda_, stream_, addresses[i], plan->buffers[i].content.data(),
             plan->buffers[i].content.size());
  auto replay = std::make_unique<GraphReplay>(judge_context(), *plan, std::move(addresses),
                                              trusted_image(*plan));
  replay->build();
  return replay;
}

}  // namespace kbeam
