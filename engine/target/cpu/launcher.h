// Starts the runner as a direct child and drives it by SIGCONT and confirmed stops. A stop is
// reported by the kernel, never by the child. Knows nothing of commands, memory layout or verdicts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "target/cpu/sandbox.h"
#include "target/cpu/watchdog.h"

namespace kbeam {

struct LaunchRequest {
  std::filesystem::path runner;
  FenceRequest fence;
  std::vector<int> cpus;  // empty: any
  int page_descriptor = -1;
  int input_descriptor = -1;
  int output_descriptor = -1;
  int scratch_descriptor = -1;
};

enum class ChildState { stopped, exited, killed };

// What the kernel says happened after a resume.
struct ChildEvent {
  ChildState state = ChildState::killed;
  int number = 0;  // stop signal, exit code or killing signal
  bool timed_out = false;
  std::int64_t wall_ns = 0;  // from just before SIGCONT to the return of the wait
};

// What the kernel says about a stopped child, from /proc: not the child's words.
struct ChildStatus {
  int threads = 0;
  int seccomp_mode = 0;
  int seccomp_filters = 0;
  int no_new_privileges = 0;
};

class Child {
 public:
  // The thread that calls this must outlive the child: the kernel kills the child when that thread
  // ends.
  static Result<std::unique_ptr<Child>> launch(const LaunchRequest& request);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits for the first stop; the child runs from its start.
  ChildEvent await(double timeout_s);
  // Lets a stopped child run until it stops again.
  ChildEvent resume(double timeout_s);

  std::optional<ChildStatus> status() const;
  // The last words on stdout and stderr, printable characters only.
  std::string printed() const;
  bool gone() const { return gone_; }
  pid_t process_id() const { return process_id_; }

 private:
  Child(pid_t process_id, int pidfd, int output);
  ChildEvent wait_for_stop(std::int64_t begin_ns);
  void end();

  pid_t process_id_;
  int pidfd_;
  int output_;
  bool gone_ = false;
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace kbeam
