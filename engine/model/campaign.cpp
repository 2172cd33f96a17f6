#include "model/campaign.h"

namespace kbeam {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::exploit:
      return "exploit";
    case Role::near_miss:
      return "near_miss";
    case Role::structural:
      return "structural";
  }
  return "unknown";
}

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::running:
      return "running";
    case StopReason::budget_wall:
      return "budget_wall";
    case StopReason::budget_evaluations:
      return "budget_evaluations";
    case StopReason::budget_device:
      return "budget_device";
    case StopReason::budget_tokens:
      return "budget_tokens";
    case StopReason::budget_money:
      return "budget_money";
    case StopReason::goal_met:
      return "goal_met";
    case StopReason::asked_to_stop:
      return "asked_to_stop";
    case StopReason::exhausted:
      return "exhausted";
    case StopReason::failed:
      return "failed";
  }
  return "unknown";
}

}  // namespace kbeam
