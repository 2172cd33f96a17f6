// Recording a plan and running its steps. Checks what the plan function says; cannot check what its
// functions do.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <kbeam/cpu_plan.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>

#include "spin.h"

namespace kbeam {
namespace {

constexpr std::size_t kMaxSteps = 100'000;
constexpr std::size_t kMaxBuffers =
    256;  // the table lives on the stack, so that a call never allocates
constexpr std::size_t kMaxErrors = 8;
constexpr std::size_t kMaxNotes = 64;
constexpr std::size_t kMaxNoteLength = 1024;
constexpr std::int64_t kScratchAlignment = 64;
constexpr std::int64_t kMaxScratchBytes = std::int64_t{1} << 46;

std::string role_word(std::int32_t role) {
  return role == KBEAM_OUTPUT ? "output" : "input";
}

std::string type_word(std::int32_t type) {
  switch (type) {
    case KBEAM_F32:
      return "float";
    case KBEAM_F64:
      return "double";
    case KBEAM_I32:
      return "int32_t";
    case KBEAM_I64:
      return "int64_t";
  }
  return "type " + std::to_string(type);
}

std::string bounded(const char* text) {
  return text == nullptr ? std::string() : std::string(text, strnlen(text, kMaxNoteLength));
}

// Arguments of a step are compared as bytes, and padding between them shows what the stack held
// before. With a cleared stack two recordings of one plan agree in padding too.
[[gnu::noinline]] void clear_stack() {
  volatile std::byte stack[32 * 1024];
  for (volatile std::byte& byte : stack) byte = std::byte{0};
}

}  // namespace

// The host side of the C interface while one plan function runs.
struct PlanRecorder {
  const PlanShape& shape;
  CpuPlan& plan;
  std::vector<std::string> errors;

  void error(std::string sentence) {
    if (errors.size() < kMaxErrors) errors.push_back(std::move(sentence));
  }

  std::string list_tensors() const {
    std::string list;
    for (const PlanTensor& tensor : shape.tensors)
      list += (list.empty() ? "" : ", ") + role_word(tensor.role) + " " + tensor.name + " (" +
              type_word(tensor.type) + ")";
    return list.empty() ? "none" : list;
  }

  std::string list_axes() const {
    std::string list;
    for (const auto& [name, value] : shape.axes) list += (list.empty() ? "" : ", ") + name;
    return list.empty() ? "none" : list;
  }

  std::int32_t find_buffer(const char* name, std::int32_t role, std::int32_t type,
                           kbeam_buffer* found) {
    // Ones instead of zeros keep a plan that goes on after a mistake from dividing by zero.
    *found = {0, 0, {1, 1, 1, 1}, {1, 1, 1, 1}};
    const std::string wanted = bounded(name);
    const std::string request =
        "plan asks for " + role_word(role) + " \"" + wanted + "\" of " + type_word(type);
    for (std::size_t id = 0; id < shape.tensors.size(); ++id) {
      const PlanTensor& tensor = shape.tensors[id];
      if (tensor.name != wanted) continue;
      if (tensor.role != role || tensor.type != type) {
        error(request + ", but it is an " + role_word(tensor.role) + " of " +
              type_word(tensor.type) + "; the problem has: " + list_tensors());
        return -1;
      }
      found->id = static_cast<std::int32_t>(id);
      found->rank = tensor.rank;
      std::copy(std::begin(tensor.dim), std::end(tensor.dim), found->dim);
      std::copy(std::begin(tensor.stride), std::end(tensor.stride), found->stride);
      return found->id;
    }
    error(request + ", which does not exist; the problem has: " + list_tensors());
    return -1;
  }

  std::int64_t axis(const char* name) {
    const auto at = shape.axes.find(bounded(name));
    if (at != shape.axes.end()) return at->second;
    error("plan asks for axis \"" + bounded(name) +
          "\", which does not exist; the problem has: " + list_axes());
    return 1;
  }

  std::int32_t scratch(std::int64_t bytes, std::int32_t copies) {
    const std::size_t id = shape.tensors.size() + plan.scratch_offsets_.size();
    std::int64_t total = 0;
    if (bytes < 0 || copies < 1 || __builtin_mul_overflow(bytes, std::int64_t{copies}, &total) ||
        total > kMaxScratchBytes - plan.scratch_bytes_ - kScratchAlignment) {
      error("plan asks for scratch of " + std::to_string(bytes) + " bytes, " +
            std::to_string(copies) +
            " times: the sizes must be positive and below 64 TiB together");
      return 0;
    }
    if (id >= kMaxBuffers) {
      error("plan uses more than " + std::to_string(kMaxBuffers) +
            " tensors and scratch buffers: merge some");
      return 0;
    }
    plan.scratch_offsets_.push_back(plan.scratch_bytes_);
    plan.scratch_bytes_ += (total + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    return static_cast<std::int32_t>(id);
  }

  void add_step(const kbeam_step& step) {
    if (plan.steps_.size() >= kMaxSteps) {
      error("plan has more than " + std::to_string(kMaxSteps) +
            " steps: put loops inside the functions");
      return;
    }
    if (step.invoke == nullptr || step.closure == nullptr || step.count < 0 || step.grain < 0) {
      error("step " + std::to_string(plan.steps_.size()) + " has count " +
            std::to_string(step.count) + " and grain " + std::to_string(step.grain) +
            ": both must be zero or more");
      return;
    }
    const std::size_t offset = plan.closures_.size();
    const std::size_t slots =
        (step.closure_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
    plan.closures_.resize(offset + slots);
    if (slots != 0) std::memcpy(plan.closures_.data() + offset, step.closure, step.closure_bytes);
    plan.steps_.push_back({step.invoke, offset, step.closure_bytes, step.count, step.grain});
  }

  void note(const char* key, const char* value) {
    if (plan.notes_.size() < kMaxNotes) plan.notes_[bounded(key)] = bounded(value);
  }

  void fail(std::int32_t kind, const char* message) {
    const std::string words = bounded(message);
    if (kind == KBEAM_NOT_SUPPORTED) plan.not_supported_ = true;
    error(words.empty() ? "the plan function gave no reason" : words);
  }

  kbeam_host host() {
    return {
        .abi = KBEAM_ABI,
        .workers = plan.workers_,
        .self = this,
        .find_buffer =
            [](void* self, const char* name, std::int32_t role, std::int32_t type,
               kbeam_buffer* found) { return of(self).find_buffer(name, role, type, found); },
        .axis = [](void* self, const char* name) { return of(self).axis(name); },
        .scratch = [](void* self, std::int64_t bytes,
                      std::int32_t copies) { return of(self).scratch(bytes, copies); },
        .add_step = [](void* self, const kbeam_step* step) { of(self).add_step(*step); },
        .note = [](void* self, const char* key, const char* value) { of(self).note(key, value); },
        .fail = [](void* self, std::int32_t kind,
                   const char* message) { of(self).fail(kind, message); },
    };
  }

  static PlanRecorder& of(void* self) { return *static_cast<PlanRecorder*>(self); }
};

CpuPlan CpuPlan::record(kbeam_plan_function* function, const PlanShape& shape, int workers) {
  CpuPlan plan;
  plan.workers_ = std::max(1, workers);
  plan.tensors_ = shape.tensors.size();
  PlanRecorder recorder{shape, plan, {}};
  if (shape.tensors.size() >= kMaxBuffers) recorder.error("the problem has too many tensors");
  const kbeam_host host = recorder.host();
  try {
    clear_stack();
    function(&host);
  } catch (const std::exception& thrown) {
    recorder.error("the plan function threw: " + bounded(thrown.what()));
  } catch (...) {
    recorder.error("the plan function threw something that is no std::exception");
  }
  if (recorder.errors.empty() && plan.steps_.empty()) recorder.error("the plan has no steps");
  for (const std::string& sentence : recorder.errors)
    plan.error_ += (plan.error_.empty() ? "" : "; ") + sentence;
  return plan;
}

std::string CpuPlan::difference(const CpuPlan& other) const {
  const auto numbers = [](std::int64_t mine, std::int64_t theirs) {
    return std::to_string(mine) + ", then " + std::to_string(theirs);
  };
  if (error_ != other.error_) return "it failed only once: " + error_ + other.error_;
  if (steps() != other.steps()) return "the number of steps is " + numbers(steps(), other.steps());
  if (scratch_bytes_ != other.scratch_bytes_)
    return "the scratch bytes are " + numbers(scratch_bytes_, other.scratch_bytes_);
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    const Step& mine = steps_[index];
    const Step& theirs = other.steps_[index];
    const std::string step = "step " + std::to_string(index);
    if (mine.count != theirs.count) return step + " has count " + numbers(mine.count, theirs.count);
    if (mine.grain != theirs.grain) return step + " has grain " + numbers(mine.grain, theirs.grain);
    if (mine.invoke != theirs.invoke || mine.closure_bytes != theirs.closure_bytes ||
        std::memcmp(closures_.data() + mine.closure_offset,
                    other.closures_.data() + theirs.closure_offset, mine.closure_bytes) != 0)
      return step + " calls another function or has other arguments";
  }
  return {};
}

// What the workers of one execution share. `next` hands out work items of the current step.
struct CpuPlan::Execution {
  void* const* buffers;
  std::uint32_t workers;
  alignas(64) std::atomic<std::int64_t> next{0};
  alignas(64) std::atomic<std::uint32_t> arrived{0};
  alignas(64) std::atomic<std::uint32_t> phase{0};

  // The last worker to arrive resets `next` before it lets the others go.
  void barrier() {
    const std::uint32_t current = phase.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
      arrived.store(0, std::memory_order_relaxed);
      next.store(0, std::memory_order_relaxed);
      phase.store(current + 1, std::memory_order_release);
      phase.notify_all();
    } else {
      wait_while_equal(phase, current, kSpinFirst);
    }
  }
};

// Whoever calls a kernel gets its processor back: a kernel may flush subnormals or round otherwise
// for itself, but neither the next call nor the caller's own arithmetic may feel it, and the
// caller's copies run forwards.
class ProcessorState {
 public:
#if defined(__x86_64__)
  ProcessorState() : vector_mode_(_mm_getcsr()) {
    asm volatile("fnstcw %0" : "=m"(x87_mode_));
  }
  ~ProcessorState() {
    _mm_setcsr(vector_mode_);
    asm volatile("cld\n\temms\n\tfldcw %0" : : "m"(x87_mode_) : "cc", "memory");
  }
#else
  ProcessorState() = default;
  ~ProcessorState() = default;
#endif
  ProcessorState(const ProcessorState&) = delete;
  ProcessorState& operator=(const ProcessorState&) = delete;

 private:
  [[maybe_unused]] unsigned int vector_mode_ = 0;
  [[maybe_unused]] unsigned short x87_mode_ = 0;
};

void CpuPlan::execute(std::span<void* const> tensors, void* scratch, WorkerTeam& team) const {
  std::array<void*, kMaxBuffers> buffers;
  const std::size_t given = std::min(tensors.size(), tensors_);
  std::copy_n(tensors.begin(), given, buffers.begin());
  for (std::size_t index = 0; index < scratch_offsets_.size(); ++index)
    buffers[tensors_ + index] = static_cast<std::byte*>(scratch) + scratch_offsets_[index];

  const int workers = std::min(team.workers(), workers_);
  if (workers == 1) {
    const ProcessorState state;
    for (const Step& step : steps_) run_alone(step, buffers.data());
    return;
  }
  Execution execution{.buffers = buffers.data(), .workers = static_cast<std::uint32_t>(workers)};
  team.run([this, &execution](int worker) {
    const ProcessorState state;
    if (static_cast<std::uint32_t>(worker) < execution.workers) run_worker(execution, worker);
  });
}

void CpuPlan::run_alone(const Step& step, void* const* buffers) const {
  const void* closure = closures_.data() + step.closure_offset;
  const std::int64_t grain = step.grain == 0 ? step.count : step.grain;
  for (std::int64_t begin = 0; begin < step.count; begin += std::min(grain, step.count - begin))
    step.invoke(closure, buffers, begin, begin + std::min(grain, step.count - begin), 0);
}

void CpuPlan::run_worker(Execution& execution, int worker) const {
  for (std::size_t index = 0; index < steps_.size(); ++index) {
    const Step& step = steps_[index];
    if (step.count == 1) {
      if (worker == 0) run_alone(step, execution.buffers);
      // Worker 0 runs single items in a row without meeting the others in between.
      if (index + 1 < steps_.size() && steps_[index + 1].count == 1) continue;
    } else {
      run_share(step, execution, worker);
    }
    if (index + 1 < steps_.size())
      execution.barrier();  // the end of team.run() is the last barrier
  }
}

void CpuPlan::run_share(const Step& step, Execution& execution, int worker) const {
  const void* closure = closures_.data() + step.closure_offset;
  if (step.grain == 0) {
    const __int128 count = step.count;
    const auto begin = static_cast<std::int64_t>(count * worker / execution.workers);
    const auto end = static_cast<std::int64_t>(count * (worker + 1) / execution.workers);
    if (begin < end) step.invoke(closure, execution.buffers, begin, end, worker);
    return;
  }
  // The counter passes `count` by at most one grain a worker; a grain above `count` cannot make it
  // overflow.
  const std::int64_t grain = std::min(step.grain, step.count);
  for (;;) {
    const std::int64_t begin = execution.next.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= step.count) return;
    step.invoke(closure, execution.buffers, begin, begin + std::min(grain, step.count - begin),
                worker);
  }
}

}  // namespace kbeam
