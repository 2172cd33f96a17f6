// WorkerTeam: threads that sleep on one number between calls. Does not pin threads or know what a
// plan is.
#include <kbeam/cpu_plan.h>

#include <atomic>
#include <thread>

#include "spin.h"

namespace kbeam {

struct WorkerTeam::Shared {
  // Each call raises `generation`; a helper that sees a new one reads `job`, runs it and lowers
  // `running`.
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::uint32_t> running{0};
  const std::function<void(int)>* job = nullptr;  // null tells the helpers to end
  std::vector<std::thread> helpers;

  void serve(int worker) {
    std::uint32_t seen = 0;
    for (;;) {
      wait_while_equal(generation, seen, kSleepAtOnce);
      ++seen;
      const std::function<void(int)>* current = job;
      if (current != nullptr) (*current)(worker);
      // Worker 0 may destroy the team once this reaches zero, so nothing is touched after the
      // notification except when the helper is joined.
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
      if (current == nullptr) return;
    }
  }

  void start(const std::function<void(int)>* next_job) {
    job = next_job;
    running.store(static_cast<std::uint32_t>(helpers.size()), std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_release);
    generation.notify_all();
  }
};

WorkerTeam::WorkerTeam(int workers) : workers_(workers < 1 ? 1 : workers) {
  if (workers_ == 1) return;
  shared_ = std::make_unique<Shared>();
  shared_->helpers.reserve(static_cast<std::size_t>(workers_ - 1));
  for (int worker = 1; worker < workers_; ++worker)
    shared_->helpers.emplace_back([shared = shared_.get(), worker] { shared->serve(worker); });
}

WorkerTeam::~WorkerTeam() {
  if (!shared_) return;
  shared_->start(nullptr);
  for (std::thread& helper : shared_->helpers) helper.join();
}

void WorkerTeam::run(const std::function<void(int)>& job) {
  if (!shared_) {
    job(0);
    return;
  }
  shared_->start(&job);
  job(0);
  for (std::uint32_t left = shared_->running.load(std::memory_order_acquire); left != 0;
       left = shared_->running.load(std::memory_order_acquire))
    wait_while_equal(shared_->running, left, kSpinFirst);
}

}  // namespace kbeam
