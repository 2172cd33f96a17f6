// Records and runs CPU plans. The judge's runner and the shipped library link this same code, so
// what is judged is what ships. Knows nothing of problems: the caller names the tensors.
#pragma once

#include <kbeam/plan_abi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kbeam {

// A tensor offered to the plan function. Its position in the list is its buffer id.
struct PlanTensor {
  std::string name;
  kbeam_role role = KBEAM_INPUT;
  kbeam_element_type type = KBEAM_F32;
  int rank = 0;
  std::int64_t dim[KBEAM_MAX_RANK] = {1, 1, 1, 1};
  std::int64_t stride[KBEAM_MAX_RANK] = {0, 0, 0, 0};
};

struct PlanShape {
  std::vector<PlanTensor> tensors;
  std::map<std::string, std::int64_t> axes;
};

// A fixed team of threads; the caller of run() is worker 0. Threads sleep between calls.
class WorkerTeam {
 public:
  explicit WorkerTeam(int workers);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int workers() const { return workers_; }
  // Calls job(worker) on every worker and returns when all have ended.
  void run(const std::function<void(int)>& job);

 private:
  struct Shared;
  int workers_;
  std::unique_ptr<Shared> shared_;
};

// The recorded steps for one shape. Immutable after record(); execute() may be called again and
// again with other buffers, by one caller at a time for each scratch memory.
class CpuPlan {
 public:
  // Runs `function` for `shape`. `error()` is empty when the plan can run.
  static CpuPlan record(kbeam_plan_function* function, const PlanShape& shape, int workers);

  const std::string& error() const { return error_; }
  bool not_supported() const { return not_supported_; }
  const std::map<std::string, std::string>& notes() const { return notes_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  // What differs from another plan of the same shape, recorded in this process; empty when nothing
  // does.
  std::string difference(const CpuPlan& other) const;
  int steps() const { return static_cast<int>(steps_.size()); }

  // `tensors` in the order of the shape; `scratch` of scratch_bytes(), 64-byte aligned.
  void execute(std::span<void* const> tensors, void* scratch, WorkerTeam& team) const;

 private:
  struct Step {
    void (*invoke)(const void*, void* const*, std::int64_t, std::int64_t, std::int32_t);
    std::size_t closure_offset;  // into closures_
    std::size_t closure_bytes;
    std::int64_t count;
    std::int64_t grain;
  };
  struct Execution;
  friend struct PlanRecorder;

  void run_alone(const Step& step, void* const* buffers) const;
  void run_worker(Execution& execution, int worker) const;
  void run_share(const Step& step, Execution& execution, int worker) const;

  int workers_ = 1;
  std::size_t tensors_ = 0;
  std::vector<Step> steps_;
  std::vector<std::max_align_t> closures_;
  std::vector<std::int64_t> scratch_offsets_;
  std::int64_t scratch_bytes_ = 0;
  std::map<std::string, std::string> notes_;
  std::string error_;
  bool not_supported_ = false;
};

}  // namespace kbeam
