// The sessions of a coding agent as another run recorded them: the same submissions reach the loop
// after the same number of evaluations. Runs nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "propose/proposer.h"

namespace kbeam {

struct RecordedSession {
  RequestRecord request;
  int asked_at = 0;  // evaluations that the loop had then
  struct Brought {
    Delivery delivery;
    int at_evaluation = 0;
  };
  std::vector<Brought> brought;  // in their order
  ReplyRecord reply;
  int ended_at = 0;  // evaluations
};

// `sessions` in the order in which they were asked for.
std::unique_ptr<Proposer> make_recorded_agent(std::string name,
                                              std::vector<RecordedSession> sessions);

}  // namespace kbeam
