#include "session/bench_process.h"

#include <algorithm>

#include "base/defence.h"
#include "base/entropy.h"
#include "check/case_check.h"
#include "problem/problem_library.h"

namespace kbeam {
namespace {

// Beyond the tensors themselves: guard zones, guard pages and random placement, per tensor and
// slot.
constexpr std::int64_t kPlacementSlack = 1 << 20;

std::int64_t capacity(const Problem& problem, std::span<const Case> cases, kbeam_role role) {
  std::int64_t most = 0;
  for (const Case& the_case : cases) {
    std::int64_t bytes = 0;
    for (const TensorShape& shape : tensor_shapes(problem, the_case.axes))
      if (shape.role == role) bytes += shape.bytes() + kPlacementSlack;
    most = std::max(most, bytes * kSlots);
  }
  return most;
}

template <typename To>
Outcome<To> failed(const RunnerFailure& failure) {
  return {std::nullopt, failure};
}

}  // namespace

std::size_t row_of(const Problem& problem, const Subject& subject, const Case& the_case) {
  const auto found = the_case.axes.find(problem.regime_axis);
  const std::int64_t value = found == the_case.axes.end() ? 0 : found->second;
  for (std::size_t i = 0; i < subject.rows.size(); ++i)
    if (subject.rows[i].axis_least <= value && value <= subject.rows[i].axis_most) return i;
  return subject.rows.size() - 1;
}

Result<Outcome<std::unique_ptr<BenchProcess>>> BenchProcess::start(const Problem& problem,
                                                                   ProblemCode& code,
                                                                   const Subject& subject,
                                                                   const CpuSeat& seat,
                                                                   std::span<const Case> cases) {
  using Started = Outcome<std::unique_ptr<BenchProcess>>;
  RunnerOptions options;
  options.runner = seat.runner;
  options.modules = subject.modules;
  options.workers = static_cast<int>(seat.cpus.size());
  options.cpus = seat.cpus;
  options.input_bytes = capacity(problem, cases, KBEAM_INPUT);
  options.output_bytes = capacity(problem, cases, KBEAM_OUTPUT);
  options.least_sandbox = seat.least_sandbox;
  options.may_use_libraries = subject.may_use_libraries;
  ASSIGN_OR_RETURN(auto runner, Runner::start(options));
  if (!runner.ok()) return Started{std::nullopt, runner.failure};
  std::unique_ptr<BenchProcess> process(new BenchProcess(problem, code, subject, seat));
  process->runner_ = std::move(*runner.value);
  return Started{std::move(process), {}};
}

Outcome<bool> BenchProcess::prepare(const Case& the_case, std::span<const TensorView> base) {
  const std::vector<TensorShape> shapes = tensor_shapes(problem_, the_case.axes);
  auto known = plans_.find(the_case.name);
  if (known == plans_.end()) {
    const std::size_t row = row_of(problem_, subject_, the_case);
    auto planned = runner_->plan(row, shapes, the_case.axes, seat_.call_timeout_s);
    if (!planned.ok()) return failed<bool>(planned.failure);
    known = plans_.emplace(the_case.name, std::move(*planned.value)).first;
  }
  if (const Result<void> laid_out = runner_->lay_out(shapes, kSlots); !laid_out.ok()) {
    // A runner that the candidate has broken says so again; otherwise the trouble is ours.
    const Outcome<CallTime> probe = runner_->empty_call();
    return failed<bool>(probe.ok() ? RunnerFailure{Verdict::engine_failed, laid_out.error().text()}
                                   : probe.failure);
  }
  case_ = the_case;
  base_ = base;
  plan_id_ = known->second.plan_id;
  scratch_bytes_ = known->second.scratch_bytes;
  notes_ = known->second.notes;
  next_slot_ = 0;
  return {true, {}};
}

void BenchProcess::use_base(std::span<const TensorView> base) {
  base_ = base;
}

Outcome<std::int64_t> BenchProcess::run(std::uint64_t key, int slot) {
  if (scratch_bytes_ > 0 && defence_is_on(Defence::scratch_refill))
    runner_->refill_scratch(scratch_bytes_, random_bits());
  if (!defence_is_on(Defence::fresh_content)) key = 0;
  code_.freshen(CaseAdapter(case_), key, base_, runner_->slot(slot).inputs);
  runner_->poison(slot, random_bits());  // a key of its own: the pattern can be read back
  runner_->flush(slot);
  // From the moment that it lies there until the clock runs nothing of the candidate does: whoever
  // has turned the process over to himself finds no time in it that is not counted.
  if (!defence_is_on(Defence::stopped_until_timed)) runner_->empty_call();
  const Outcome<CallTime> called = runner_->call(plan_id_, slot, seat_.call_timeout_s);
  if (!called.ok()) return failed<std::int64_t>(called.failure);
  if (const auto stray = runner_->inspect(slot)) return failed<std::int64_t>(*stray);
  return {called.value->wall_ns, {}};
}

Outcome<CheckedCall> BenchProcess::call(std::uint64_t key, const CheckRequest& request) {
  const int slot = next_slot_;
  next_slot_ = (next_slot_ + 1) % kSlots;
  const Outcome<std::int64_t> time = run(key, slot);
  if (!time.ok()) return failed<CheckedCall>(time.failure);
  CheckedCall result;
  result.wall_ns = *time.value;
  result.report = check_outputs(code_, CaseAdapter(case_), request, runner_->slot(slot).inputs,
                                runner_->slot(slot).outputs);
  result.report.key = key;
  if (result.report.verdict == Verdict::accepted && request.depth == CheckDepth::quick)
    return {std::move(result), {}};
  // Poison is a NaN, and so may be the right result: a full check also asks whether it was written.
  if (const auto unwritten = runner_->find_unwritten(slot);
      unwritten && defence_is_on(Defence::unwritten_check)) {
    if (result.report.verdict == Verdict::accepted) {
      result.report.verdict = Verdict::wrong_value;
      result.report.sentence = *unwritten;
    } else {
      result.report.sentence += "; " + *unwritten;
    }
  }
  return {std::move(result), {}};
}

Outcome<std::int64_t> BenchProcess::call_unchecked(std::uint64_t key) {
  const int slot = next_slot_;
  next_slot_ = (next_slot_ + 1) % kSlots;
  return run(key, slot);
}

}  // namespace kbeam
