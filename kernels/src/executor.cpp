#include <kernelbeam/executor.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "executor_state.h"

namespace kernelbeam {
namespace {

constexpr int kMostThreads = 1024;

int usable_processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

Executor::Executor(std::unique_ptr<ExecutorState> state) : state_(std::move(state)) {}
Executor::~Executor() = default;

std::unique_ptr<Executor> Executor::make(int threads) noexcept {
  if (threads < 0 || threads > kMostThreads) return nullptr;
  try {
    auto state = std::make_unique<ExecutorState>(threads == 0 ? usable_processors() : threads);
    return std::unique_ptr<Executor>(new Executor(std::move(state)));
  } catch (const std::exception&) {
    return nullptr;
  }
}

int Executor::threads() const noexcept {
  return state_->team.workers();
}

}  // namespace kernelbeam
