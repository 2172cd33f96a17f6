// The calls of a session: what is made ready, what runs, what is looked at afterwards.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/defence.h"
#include "base/entropy.h"
#include "base/hash.h"
#include "target/cuda/call_findings.h"
#include "target/cuda/figures.h"
#include "target/cuda/seat_session.h"

namespace kbeam {
namespace {

// Long enough for the host to enqueue a graph between two events while the stream is busy, so that
// the events see the device alone.
constexpr std::uint64_t kSpinNs = 30'000;
// Between the drain and the last look at the outputs, beyond the time that the check takes.
constexpr std::chrono::microseconds kLateWriteWait{50};

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

PoisonType poison_type(kbeam_element_type type) {
  return static_cast<PoisonType>(type);
}
static_assert(static_cast<int>(KBEAM_F32) == kPoisonF32 &&
              static_cast<int>(KBEAM_F64) == kPoisonF64 &&
              static_cast<int>(KBEAM_I32) == kPoisonI32 &&
              static_cast<int>(KBEAM_I64) == kPoisonI64);

}  // namespace

void SeatSession::set_control(std::uint64_t seed, std::uint64_t secret) {
  const std::uint64_t control[2] = {seed, secret};
  upload(cuda_, stream_, prepared_.layout->control(), control, sizeof(control));
}

// Into the candidate's inputs, or the judge's pristine copies: the same content from the same seed.
void SeatSession::generate(std::uint64_t seed, bool for_judge) {
  const auto& replay = for_judge ? prepared_.generate_judge : prepared_.generate_candidate;
  if (replay) {
    replay->launch();
    return;
  }
  const SessionCase& the_case = *prepared_.the_case;
  if (setup_.host_problem == nullptr)
    throw SeatRefusal(Verdict::engine_failed,
                      "no plan and no problem library generates " + the_case.the_case.name);
  HostTensors inputs = setup_.host_problem->generate(the_case.the_case, the_case.tensors, seed);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (the_case.tensors[i].role == KBEAM_INPUT)
      upload(cuda_, stream_,
             for_judge ? prepared_.layout->pristine()[i] : prepared_.layout->tensors()[i].at,
             inputs[i].data(), inputs[i].size());
  DRIVER(cuda_, cuStreamSynchronize, stream_);
  if (for_judge) prepared_.host_inputs = std::move(inputs);
}

// Device variables hold their initial values again: the image is loaded anew. A raw image can hold
// variables that nobody registered, so names are not relied upon.
void SeatSession::refresh_module() {
  if (prepared_.fresh || !prepared_.image || !defence_is_on(Defence::module_reload)) return;
  on_behalf_of_candidate("load the kernels again", [&] {
    prepared_.subject->drop();
    prepared_.image->reload();
    prepared_.subject->build();
  });
  prepared_.fresh = true;
}

void SeatSession::poison_candidate() {
  allow_on_inputs(DeviceAccess::read_write);
  if (setup_.memory == MemoryMode::guarded) {
    poison_ = {random_bits(), kPoisonF32};
    poison_guard_zones();
    poison_outputs();
  }
  for (const OwnBuffer& own : prepared_.layout->own_buffers()) refill(own);
  prepared_.tables_filled = true;
}

// Guard zones and scratch hold one pattern, counted from the start of each mapping.
void SeatSession::poison_guard_zones() {
  for (const GuardedBuffer& buffer : candidate_->buffers()) {
    const std::uint64_t tail_word = (buffer.front_bytes() + buffer.bytes) / 4;
    const CUdeviceptr tail = buffer.begin + 4 * tail_word;
    const std::uint64_t tail_bytes = buffer.mapped_bytes - 4 * tail_word;
    if (defence_is_on(Defence::guard_zones)) {
      kernels_->poison(buffer.begin, buffer.front_bytes(), 0, poison_);
      kernels_->poison(tail, tail_bytes, tail_word, poison_);
    } else {
      kernels_->fill(buffer.begin, buffer.front_bytes(), 0);
      kernels_->fill(tail, tail_bytes, 0);
    }
  }
}

void SeatSession::poison_outputs() {
  const CaseLayout& layout = *prepared_.layout;
  const SessionCase& the_case = *prepared_.the_case;
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i) {
    const GuardedBuffer& output = layout.tensors()[i];
    if (the_case.tensors[i].role != KBEAM_OUTPUT) continue;
    if (defence_is_on(Defence::poison))
      kernels_->poison(output.at, output.bytes, 0,
                       {poison_.key, poison_type(the_case.tensors[i].type)});
    else
      kernels_->fill(output.at, output.bytes, 0);
  }
}

// Tables hold what the plan computed, however they were left; scratch holds nothing of use.
void SeatSession::refill(const OwnBuffer& own) {
  const PlanBuffer& buffer =
      prepared_.the_case->subject.buffers[static_cast<std::size_t>(own.buffer)];
  if (buffer.kind == BufferKind::table) {
    if (!prepared_.tables_filled || defence_is_on(Defence::table_refill))
      upload(cuda_, stream_, own.memory.at, buffer.content.data(), buffer.content.size());
  } else if (setup_.memory == MemoryMode::guarded && defence_is_on(Defence::scratch_refill)) {
    kernels_->poison(own.memory.at, own.memory.bytes, own.memory.front_bytes() / 4, poison_);
  }
}

// Mapped read-only, an input cannot be changed and put back either.
void SeatSession::allow_on_inputs(DeviceAccess access) {
  if (!defence_is_on(Defence::read_only_inputs)) return;
  const SessionCase& the_case = *prepared_.the_case;
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i)
    if (the_case.tensors[i].role == KBEAM_INPUT)
      candidate_->allow(prepared_.layout->tensors()[i], access);
}

// Only where the attack corpus asks what a check of the candidate's own copies would miss.
void SeatSession::take_inputs_as_they_are() {
  const CaseLayout& layout = *prepared_.layout;
  for (std::size_t i = 0; i < layout.pristine().size(); ++i)
    if (layout.pristine()[i] != 0 && layout.tensors()[i].bytes > 0)
      DRIVER(cuda_, cuMemcpyDtoDAsync, layout.pristine()[i], layout.tensors()[i].at,
             layout.tensors()[i].bytes, stream_);
}

void SeatSession::drain() {
  DRIVER(cuda_, cuStreamSynchronize, stream_);
  DRIVER(cuda_, cuCtxSynchronize);
}

// From here on the judge's memory is out of reach, until a drain says that no kernel runs.
void SeatSession::enter_run(bool cold, const CallHooks& hooks) {
  if (cold_) {
    if (defence_is_on(Defence::shared_scrub)) cold_->scrub_shared();
    if (defence_is_on(Defence::local_scrub))
      cold_->scrub_local(prepared_.local_bytes + kStackBytes);
    if (cold) cold_->flush();
  }
  drain();
  allow_on_inputs(DeviceAccess::read_only);
  if (defence_is_on(Defence::judge_unmapped)) judge_->unmap();
  if (hooks.running) hooks.running();
}

void SeatSession::run_timed(SeatCall& call) {
  on_behalf_of_candidate("run", [&] {
    if (setup_.memory == MemoryMode::guarded) kernels_->spin(kSpinNs);
    DRIVER(cuda_, cuEventRecord, begin_, stream_);
    const double launched = now_ns();
    prepared_.subject->launch();
    if (defence_is_on(Defence::end_of_all_work)) DRIVER(cuda_, cuEventRecord, end_, stream_);
    DRIVER(cuda_, cuStreamSynchronize, stream_);
    call.host_ns = now_ns() - launched;
    DRIVER(cuda_, cuCtxSynchronize);
    float milliseconds = 0;
    DRIVER(cuda_, cuEventElapsedTime, &milliseconds, begin_, end_);
    call.event_ns = 1e6 * static_cast<double>(milliseconds);
  });
  prepared_.fresh = false;
}

void SeatSession::snapshot_outputs() {
  const CaseLayout& layout = *prepared_.layout;
  for (std::size_t i = 0; i < layout.snapshot().size(); ++i)
    if (layout.snapshot()[i] != 0 && layout.tensors()[i].bytes > 0)
      DRIVER(cuda_, cuMemcpyDtoDAsync, layout.snapshot()[i], layout.tensors()[i].at,
             layout.tensors()[i].bytes, stream_);
}

SeatCall SeatSession::call(const SeatCallRequest& request, const CallHooks& hooks) {
  prepare(request.case_name);
  SeatCall call;
  judge_->map();
  refresh_module();
  poison_candidate();
  set_control(request.seed, 0);
  generate(request.seed, false);
  enter_run(request.cold, hooks);
  run_timed(call);
  judge_->map();
  snapshot_outputs();
  DRIVER(cuda_, cuStreamSynchronize, stream_);
  const std::uint64_t secret = hooks.secret ? hooks.secret() : request.secret;
  if (setup_.memory == MemoryMode::plain) {
    call.report.verdict = Verdict::accepted;
    call.output_hash = hash_outputs();
  } else {
    call.report = check(request, secret);
  }
  call.report.case_name = request.case_name;
  call.report.grade = setup_.grade;
  call.report.seed = request.seed;
  if (prepared_.subject->has_direct_calls())
    call.note = "a vendor routine ran in the stream, not in the graph: it cannot be captured";
  prepared_.host_inputs.clear();
  return call;
}

// Damage outranks figures: what else was found explains them.
CheckReport SeatSession::check(const SeatCallRequest& request, std::uint64_t secret) {
  set_control(request.seed, secret);
  generate(request.seed, true);
  if (!defence_is_on(Defence::own_inputs)) take_inputs_as_they_are();
  const CheckReport damage = inspect(request.seed);
  const bool quick = request.depth == SeatDepth::quick && prepared_.quick != nullptr;
  CheckReport report;
  if (quick)
    report = check_on_device(*prepared_.the_case->quick_check, *prepared_.quick);
  else if (prepared_.full)
    report = check_on_device(*prepared_.the_case->full_check, *prepared_.full);
  else
    report = check_on_host(request, secret);
  CheckReport late;
  const bool was_late = find_late_write(late);
  const CheckReport* worse =
      damage.verdict == Verdict::wrote_outside || damage.verdict == Verdict::mutated_input ? &damage
      : was_late                                                                           ? &late
      : damage.verdict != Verdict::accepted                                                ? &damage
                                            : nullptr;
  if (worse != nullptr) {
    report.verdict = worse->verdict;
    report.sentence = worse->sentence;
  }
  return report;
}

CheckReport SeatSession::inspect(std::uint64_t seed) {
  const CaseLayout& layout = *prepared_.layout;
  const SessionCase& the_case = *prepared_.the_case;
  CallFindings findings(the_case, layout, candidate_->buffers().size());
  kernels_->begin_searches();
  for (const GuardedBuffer& buffer : candidate_->buffers()) {
    kernels_->find_damage(buffer.begin, buffer.front_bytes(), 0, 0, poison_);
    const std::uint64_t tail = buffer.front_bytes() + buffer.bytes;
    kernels_->find_damage(buffer.begin + tail / 4 * 4, buffer.mapped_bytes - tail / 4 * 4, tail / 4,
                          static_cast<std::uint32_t>(tail % 4), poison_);
  }
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i) {
    const GuardedBuffer& buffer = layout.tensors()[i];
    if (the_case.tensors[i].role == KBEAM_INPUT)
      kernels_->compare(buffer.at, layout.pristine()[i], buffer.bytes);
    else
      kernels_->find_poison(layout.snapshot()[i],
                            static_cast<std::uint64_t>(the_case.tensors[i].elements()),
                            {poison_.key, poison_type(the_case.tensors[i].type)});
  }
  CheckReport report = findings.judge(kernels_->finish_searches());
  report.seed = seed;
  return report;
}

CheckReport SeatSession::check_on_device(const LaunchPlan& plan, const GraphReplay& replay) {
  const std::uint64_t bytes = plan.figures.size() * sizeof(std::uint64_t);
  kernels_->fill(prepared_.layout->figures(), bytes, 0);
  replay.launch();
  std::vector<std::uint64_t> cells(plan.figures.size());
  download(cuda_, stream_, cells.data(), prepared_.layout->figures(), bytes);
  return report_of_figures(plan, cells);
}

CheckReport SeatSession::check_on_host(const SeatCallRequest& request, std::uint64_t secret) {
  const SessionCase& the_case = *prepared_.the_case;
  const CaseLayout& layout = *prepared_.layout;
  if (setup_.host_problem == nullptr)
    throw SeatRefusal(Verdict::engine_failed,
                      "no plan and no problem library checks " + the_case.the_case.name);
  HostTensors inputs = std::move(prepared_.host_inputs);
  HostTensors outputs(the_case.tensors.size());
  inputs.resize(the_case.tensors.size());
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(the_case.tensors[i].bytes());
    const bool is_output = the_case.tensors[i].role == KBEAM_OUTPUT;
    std::vector<std::byte>& into = is_output ? outputs[i] : inputs[i];
    if (into.size() == bytes) continue;
    into.resize(bytes);
    download(cuda_, stream_, into.data(), is_output ? layout.snapshot()[i] : layout.pristine()[i],
             bytes);
  }
  return setup_.host_problem->check(the_case.the_case, the_case.tensors,
                                    {setup_.grade, request.depth == SeatDepth::quick, secret},
                                    inputs, outputs);
}

bool SeatSession::find_late_write(CheckReport& report) {
  std::this_thread::sleep_for(kLateWriteWait);
  drain();
  const CaseLayout& layout = *prepared_.layout;
  const SessionCase& the_case = *prepared_.the_case;
  kernels_->begin_searches();
  for (std::size_t i = 0; i < the_case.tensors.size(); ++i)
    if (the_case.tensors[i].role == KBEAM_OUTPUT)
      kernels_->compare(layout.tensors()[i].at, layout.snapshot()[i], layout.tensors()[i].bytes);
  const std::vector<SeatFinding> found = kernels_->finish_searches();
  std::size_t next = 0;
  for (const TensorShape& tensor : the_case.tensors) {
    if (tensor.role != KBEAM_OUTPUT) continue;
    const SeatFinding& finding = found[next++];
    if (finding.count == 0) continue;
    report.verdict = Verdict::late_write;
    report.sentence =
        fmt::format("{} changed after the call had ended", spell_byte(tensor, finding.first));
    return true;
  }
  return false;
}

std::string SeatSession::hash_outputs() {
  const CaseLayout& layout = *prepared_.layout;
  Hasher hasher;
  for (std::size_t i = 0; i < layout.snapshot().size(); ++i) {
    if (layout.snapshot()[i] == 0) continue;
    std::string bytes(layout.tensors()[i].bytes, '\0');
    download(cuda_, stream_, bytes.data(), layout.snapshot()[i], bytes.size());
    hasher.field(prepared_.the_case->tensors[i].name).field(bytes);
  }
  return hasher.hex();
}

double SeatSession::host_slope_ns(int repeats, const CallHooks& hooks) {
  judge_->map();
  refresh_module();
  poison_candidate();
  const std::uint64_t seed = random_bits();
  set_control(seed, 0);
  generate(seed, false);
  enter_run(false, hooks);
  const auto time_ns = [&](int count) {
    const double begin = now_ns();
    for (int i = 0; i < count; ++i) prepared_.subject->launch();
    DRIVER(cuda_, cuStreamSynchronize, stream_);
    return now_ns() - begin;
  };
  const double slope_ns = on_behalf_of_candidate("replay several times", [&] {
    prepared_.fresh = false;
    time_ns(1);
    const double once = time_ns(repeats);
    const double twice = time_ns(2 * repeats);
    drain();
    return (twice - once) / repeats;
  });
  if (defence_is_on(Defence::replays_checked)) check_last_replay(seed);
  return slope_ns;
}

// Replays without anything made ready in between are what a caller does: the last of them must be
// right, too.
void SeatSession::check_last_replay(std::uint64_t seed) {
  if (setup_.memory == MemoryMode::plain) return;
  judge_->map();
  snapshot_outputs();
  SeatCallRequest request;
  request.seed = seed;
  request.depth = SeatDepth::quick;
  const CheckReport report = check(request, random_bits());
  prepared_.host_inputs.clear();
  if (report.verdict != Verdict::accepted)
    throw SeatRefusal(report.verdict, "after many replays in a row: " + report.sentence);
}

SeatNodeTimes SeatSession::node_times(int repeats, const CallHooks& hooks) {
  judge_->map();
  refresh_module();
  poison_candidate();
  const std::uint64_t seed = random_bits();
  set_control(seed, 0);
  generate(seed, false);
  enter_run(false, hooks);
  return on_behalf_of_candidate("time the nodes", [&] {
    prepared_.fresh = false;
    SeatNodeTimes times;
    times.nodes = GraphReplay::timed_nodes(prepared_.the_case->subject);
    const auto rows = prepared_.subject->time_nodes(repeats);
    const auto column = [&](std::size_t at) {
      std::vector<double> values;
      for (const auto& row : rows) values.push_back(row.at(at));
      return median(std::move(values));
    };
    for (std::size_t i = 0; i < times.nodes.size(); ++i) times.node_ns.push_back(column(i));
    times.gap_ns = column(times.nodes.size());
    std::vector<double> replays;
    for (int i = 0; i < repeats; ++i) {
      SeatCall call;
      run_timed(call);
      replays.push_back(call.event_ns);
    }
    times.replay_ns = median(std::move(replays));
    return times;
  });
}

bool SeatSession::probe() {
  drain();
  judge_->map();
  return kernels_->probe();
}

}  // namespace kbeam
