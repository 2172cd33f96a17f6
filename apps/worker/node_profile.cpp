#include "apps/worker/node_profile.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/worker/task_seats.h"
#include "base/entropy.h"

namespace kbeam {
namespace {

// The call before it fills the inputs and says that the candidate is right on them.
std::optional<SeatFailure> time_nodes(Seat& seat, const std::string& case_name, int repeats,
                                      SeatNodeTimes& times) {
  if (const auto failure = seat.prepare(case_name)) return failure;
  SeatCall call;
  if (const auto failure = seat.call({.case_name = case_name,
                                      .seed = random_bits(),
                                      .secret = random_bits(),
                                      .depth = SeatDepth::quick},
                                     call))
    return failure;
  if (call.report.verdict != Verdict::accepted)
    return SeatFailure{call.report.verdict, call.report.sentence, true};
  return seat.node_times(case_name, repeats, times);
}

Json case_json(const SeatCase& the_case, const SeatNodeTimes& times) {
  Json nodes = Json::array();
  for (std::size_t i = 0; i < times.nodes.size(); ++i) {
    const PlanNode& node = the_case.subject->nodes.at(static_cast<std::size_t>(times.nodes[i]));
    nodes.push_back({{"node", times.nodes[i]},
                     {"kernel", node.kernel},
                     {"median_ns", std::max(0.0, times.node_ns[i] - times.gap_ns)}});
  }
  return {{"case", the_case.the_case.name},
          {"total_ns", times.replay_ns},
          {"gap_ns", times.gap_ns},
          {"nodes", std::move(nodes)},
          {"counters", Json::array()}};
}

}  // namespace

Result<Json> profile_nodes(const LoadedTask& task, const NodeProfileRequest& request) {
  std::vector<std::string> names;
  for (const TaskCase& task_case : task.task.cases)
    if (task.task.candidate.plan_of_case.contains(task_case.the_case.name))
      names.push_back(task_case.the_case.name);
  SeatOptions options = seat_options(task, task.task.candidate, names);
  options.worker = request.worker;
  options.device = request.device;
  Json profile{{"device", ""}, {"cases", Json::array()}, {"left_out", Json::array()}};
  std::unique_ptr<Seat> seat;
  for (const SeatCase& the_case : options.cases) {
    const std::string& name = the_case.the_case.name;
    std::optional<SeatFailure> failure;
    if (seat == nullptr) {  // the first case, or the one before ended the process
      ASSIGN_OR_RETURN(seat, request.start_seat(options, failure));
      if (failure)
        return Error{ErrorCode::bad_input, "profile " + task.task.candidate.id, failure->sentence,
                     "check it first: kbeam check"};
      profile["device"] = seat->device().name;
    }
    SeatNodeTimes times;
    failure = time_nodes(*seat, name, request.repeats, times);
    if (failure) {
      profile["left_out"].push_back(fmt::format("{}: {}", name, failure->sentence));
      if (!failure->alive) seat.reset();
      continue;
    }
    profile["cases"].push_back(case_json(the_case, times));
  }
  return profile;
}

}  // namespace kbeam
