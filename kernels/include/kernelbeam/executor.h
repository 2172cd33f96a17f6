// Where calls run: a team of threads, and the plans that earlier calls have made. Knows no
// operation.
#pragma once

#include <memory>

namespace kernelbeam {

struct ExecutorState;

// May be shared between threads, but then its calls run one after the other: for calls at the same
// time make one executor a thread. Threads sleep between calls and are not pinned.
class Executor {
 public:
  // `threads` 0 means every processor that this process may use. Null when the threads cannot be
  // started.
  static std::unique_ptr<Executor> make(int threads = 1) noexcept;
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  int threads() const noexcept;
  ExecutorState& state() noexcept { return *state_; }  // for the library's own use

 private:
  explicit Executor(std::unique_ptr<ExecutorState> state);
  std::unique_ptr<ExecutorState> state_;
};

}  // namespace kernelbeam
