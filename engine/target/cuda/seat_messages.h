// What the messages between conductor and seat say, as JSON and back.
//
//   start, prepare, call, slope, nodes, probe, end   from the conductor: {"do": word, ...}
//   running, drained                                 from the seat, in the middle of a command
//   {"secret": number}                               the conductor's answer to drained
//   done, failed                                     from the seat, at the end of a command
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "target/cuda/seat.h"
#include "target/cuda/seat_layout.h"

namespace kbeam {

struct SeatStart {
  std::string grade;
  bool may_use_libraries = false;
  bool plain_memory = false;
  std::map<std::string, std::string> images;  // by hash: files
  std::string problem_module;                 // empty: none
  std::vector<SessionCase> cases;
};

SeatStart start_of(const SeatOptions& options);
Json to_json(const SeatStart& start);
Result<SeatStart> seat_start_from_json(const Json& json);

Json to_json(const SeatDevice& device);
Result<SeatDevice> seat_device_from_json(const Json& json);
// Without `secret`: that travels later, by itself.
Json to_json(const SeatCallRequest& request);
Result<SeatCallRequest> seat_call_request_from_json(const Json& json);
Json to_json(const SeatCall& call);
Result<SeatCall> seat_call_from_json(const Json& json);
Json to_json(const SeatNodeTimes& times);
Result<SeatNodeTimes> seat_node_times_from_json(const Json& json);
Json to_json(const SeatFailure& failure);
Result<SeatFailure> seat_failure_from_json(const Json& json);

}  // namespace kbeam
