// The process of a seat as its conductor sees it: started around a socket pair, its output kept,
// killed as a group. Knows no command.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "target/cuda/seat.h"
#include "target/cuda/seat_channel.h"

namespace kbeam {

// The environment of a seat: what libraries need to be found, one visible device, no compiler
// cache. `device` counts within the devices that are visible here.
std::vector<std::string> seat_environment(int device);

class SeatProcess {
 public:
  // The command ends with the worker's seat argument and descriptor 3.
  static Result<std::unique_ptr<SeatProcess>> start(const std::vector<std::string>& command,
                                                    const std::vector<std::string>& environment);
  ~SeatProcess();  // kills
  SeatProcess(const SeatProcess&) = delete;
  SeatProcess& operator=(const SeatProcess&) = delete;

  const SeatChannel& channel() const { return channel_; }
  // Waits for the process to end by itself, for a while; kills it then.
  SeatEnding finish(double timeout_s);
  // Kills the process and what it started. False when the kernel does not let go of it: its
  // driver hangs.
  bool kill();
  // The end of what it printed, after it has ended.
  std::string output();

 private:
  SeatProcess(pid_t pid, int socket, int output);
  bool reap(double timeout_s);
  void collect_output();

  pid_t pid_;
  int socket_;
  int output_;
  SeatChannel channel_;
  bool reaped_ = false;
  int status_ = 0;
  std::string printed_;
  std::thread reader_;
};

}  // namespace kbeam
