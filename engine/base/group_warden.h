// Ends the process groups of a process that was killed. The kernel can end a child with its parent,
// but not the child's own children: the passes of a compiler would run on. A warden is a small
// process beside this one that outlives it just long enough to kill every group in its care.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"

namespace kbeam {

class GroupWarden {
 public:
  // The warden of this process, started when there is none alive. One a process is enough: it
  // costs a fork, and what it guards is this process. `running`: a group that a new warden has in
  // its care from its first moment, because the one before it died.
  static Result<std::shared_ptr<const GroupWarden>> of_this_process(pid_t running = 0);

  // Called by the parent before the leader of the group may have children: from here on the warden
  // answers for all of them.
  bool take(pid_t group) const;
  // Called by the parent once the group is dead, before its number can be given to others.
  void release(pid_t group) const;

  // Readable once the warden is gone: whoever runs a group then takes a new one.
  int end_handle() const { return end_handle_; }

  ~GroupWarden();
  GroupWarden(const GroupWarden&) = delete;
  GroupWarden& operator=(const GroupWarden&) = delete;

 private:
  GroupWarden(pid_t process_id, int end_handle, int channel)
      : process_id_(process_id), end_handle_(end_handle), channel_(channel) {}
  static Result<std::shared_ptr<const GroupWarden>> start(pid_t running);
  bool has_ended() const;

  pid_t process_id_;
  int end_handle_;  // a pidfd
  int channel_;     // one message a group: positive takes, negative releases
};

}  // namespace kbeam
