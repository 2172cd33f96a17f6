#include "target/cuda/seat_messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/json_forms.h"
#include "model/json_walk.h"

namespace kbeam {

// SessionCase and its like with plain types: enums of C headers travel as numbers, plans as indices
// into one list.
struct SeatTensorForm {
  std::string name;
  int role = 0;
  int type = 0;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
};
struct SeatCaseForm {
  std::string name;
  AxisValues axes;
  std::string family;
  std::vector<SeatTensorForm> tensors;
  int subject = -1;
  int generate = -1;
  int quick_check = -1;
  int full_check = -1;
};
struct SeatStartForm {
  SeatStart rest;
  std::vector<SeatCaseForm> cases;
};
struct SeatRequestForm {
  std::string case_name;
  std::uint64_t seed = 0;
  bool full = true;
  bool cold = true;
};
struct SeatCallForm {
  double event_ns = 0;
  double host_ns = 0;
  std::string output_hash;
  std::string note;
};
struct SeatFailureForm {
  std::string verdict;
  std::string sentence;
  bool alive = false;
};

static void walk(auto& visit, Is<SeatTensorForm> auto& form) {
  visit("name", form.name);
  visit("role", form.role);
  visit("type", form.type);
  visit("dims", form.dims);
  visit("strides", form.strides);
}
static void walk(auto& visit, Is<SeatCaseForm> auto& form) {
  visit("name", form.name);
  visit("axes", form.axes);
  visit("family", form.family);
  visit("tensors", form.tensors);
  visit("subject", form.subject);
  visit("generate", form.generate);
  visit("quick_check", form.quick_check);
  visit("full_check", form.full_check);
}
static void walk(auto& visit, Is<SeatStartForm> auto& form) {
  visit("grade", form.rest.grade);
  visit("may_use_libraries", form.rest.may_use_libraries);
  visit("plain_memory", form.rest.plain_memory);
  visit("images", form.rest.images);
  visit("problem_module", form.rest.problem_module);
  visit("cases", form.cases);
}
static void walk(auto& visit, Is<SeatDevice> auto& device) {
  visit("name", device.name);
  visit("uuid", device.uuid);
  visit("driver", device.driver);
  visit("multiprocessors", device.multiprocessors);
  visit("architecture", device.architecture);
  visit("weaknesses", device.weaknesses);
}
static void walk(auto& visit, Is<SeatRequestForm> auto& form) {
  visit("case_name", form.case_name);
  visit("seed", form.seed);
  visit("full", form.full);
  visit("cold", form.cold);
}
static void walk(auto& visit, Is<SeatCallForm> auto& form) {
  visit("event_ns", form.event_ns);
  visit("host_ns", form.host_ns);
  visit("output_hash", form.output_hash);
  visit("note", form.note);
}
static void walk(auto& visit, Is<SeatNodeTimes> auto& times) {
  visit("nodes", times.nodes);
  visit("node_ns", times.node_ns);
  visit("gap_ns", times.gap_ns);
  visit("replay_ns", times.replay_ns);
}
static void walk(auto& visit, Is<SeatFailureForm> auto& form) {
  visit("verdict", form.verdict);
  visit("sentence", form.sentence);
  visit("alive", form.alive);
}

SeatStart start_of(const SeatOptions& options) {
  SeatStart start;
  start.grade = options.grade;
  start.may_use_libraries = options.may_use_libraries;
  start.plain_memory = options.plain_memory;
  for (const auto& [hash, file] : options.images)
    start.images[hash] = std::filesystem::absolute(file).string();
  if (!options.problem_module.empty())
    start.problem_module = std::filesystem::absolute(options.problem_module).string();
  const auto copy = [](const LaunchPlan* plan) {
    return plan == nullptr ? std::nullopt : std::optional<LaunchPlan>(*plan);
  };
  for (const SeatCase& each : options.cases)
    if (each.subject != nullptr)
      start.cases.push_back({each.the_case, each.tensors, *each.subject, copy(each.generate),
                             copy(each.quick_check), copy(each.full_check)});
  return start;
}

Json to_json(const SeatStart& start) {
  SeatStartForm form{start, {}};
  form.rest.cases.clear();
  Json plans = Json::array();
  std::vector<std::string> texts;  // equal plans travel once: cases share the problem's
  const auto index_of = [&](const LaunchPlan& plan) {
    Json json = to_json(plan);
    std::string text = json_text(json);
    const auto known = std::find(texts.begin(), texts.end(), text);
    if (known != texts.end()) return static_cast<int>(known - texts.begin());
    texts.push_back(std::move(text));
    plans.push_back(std::move(json));
    return static_cast<int>(texts.size() - 1);
  };
  const auto index_or_none = [&](const std::optional<LaunchPlan>& plan) {
    return plan ? index_of(*plan) : -1;
  };
  for (const SessionCase& each : start.cases) {
    SeatCaseForm& target = form.cases.emplace_back();
    target.name = each.the_case.name;
    target.axes = each.the_case.axes;
    target.family = each.the_case.family;
    for (const TensorShape& tensor : each.tensors)
      target.tensors.push_back({tensor.name, static_cast<int>(tensor.role),
                                static_cast<int>(tensor.type), tensor.dims, tensor.strides});
    target.subject = index_of(each.subject);
    target.generate = index_or_none(each.generate);
    target.quick_check = index_or_none(each.quick_check);
    target.full_check = index_or_none(each.full_check);
  }
  Json json = write_value(form);
  json["plans"] = std::move(plans);
  return json;
}

Result<SeatStart> seat_start_from_json(const Json& json) {
  const auto damaged = [](const std::string& happened) {
    return Error{ErrorCode::corrupt, "read a seat's start message", happened,
                 "both sides must be the same kbeam-worker"};
  };
  ASSIGN_OR_RETURN(SeatStartForm form, read_noun<SeatStartForm>(json, "a seat's start message"));
  std::vector<LaunchPlan> plans;
  for (const Json& plan : json.value("plans", Json::array())) {
    ASSIGN_OR_RETURN(LaunchPlan read, launch_plan_from_json(plan));
    plans.push_back(std::move(read));
  }
  SeatStart start = std::move(form.rest);
  const auto plan_at = [&](int index) -> std::optional<LaunchPlan> {
    if (index < 0 || index >= static_cast<int>(plans.size())) return std::nullopt;
    return plans[static_cast<std::size_t>(index)];
  };
  for (const SeatCaseForm& each : form.cases) {
    SessionCase target;
    target.the_case.name = each.name;
    target.the_case.axes = each.axes;
    target.the_case.family = each.family;
    for (const SeatTensorForm& tensor : each.tensors) {
      if (tensor.strides.size() != tensor.dims.size())
        return damaged("a tensor has other numbers of dims and strides");
      target.tensors.push_back({tensor.name, static_cast<kbeam_role>(tensor.role),
                                static_cast<kbeam_element_type>(tensor.type), tensor.dims,
                                tensor.strides});
    }
    const auto subject = plan_at(each.subject);
    if (!subject) return damaged("case " + each.name + " has no plan");
    target.subject = *subject;
    target.generate = plan_at(each.generate);
    target.quick_check = plan_at(each.quick_check);
    target.full_check = plan_at(each.full_check);
    start.cases.push_back(std::move(target));
  }
  return start;
}

Json to_json(const SeatDevice& device) {
  return write_value(device);
}
Result<SeatDevice> seat_device_from_json(const Json& json) {
  return read_noun<SeatDevice>(json, "a seat's device");
}

Json to_json(const SeatCallRequest& request) {
  return write_value(SeatRequestForm{request.case_name, request.seed,
                                     request.depth == SeatDepth::full, request.cold});
}
Result<SeatCallRequest> seat_call_request_from_json(const Json& json) {
  ASSIGN_OR_RETURN(const SeatRequestForm form,
                   read_noun<SeatRequestForm>(json, "a seat's call request"));
  return SeatCallRequest{form.case_name, form.seed, 0,
                         form.full ? SeatDepth::full : SeatDepth::quick, form.cold};
}

Json to_json(const SeatCall& call) {
  Json json = write_value(SeatCallForm{call.event_ns, call.host_ns, call.output_hash, call.note});
  json["report"] = to_json(call.report);
  return json;
}
Result<SeatCall> seat_call_from_json(const Json& json) {
  ASSIGN_OR_RETURN(const SeatCallForm form, read_noun<SeatCallForm>(json, "a seat's call"));
  ASSIGN_OR_RETURN(CheckReport report, check_report_from_json(json.value("report", Json())));
  return SeatCall{form.event_ns, form.host_ns, std::move(report), form.output_hash, form.note};
}

Json to_json(const SeatNodeTimes& times) {
  return write_value(times);
}
Result<SeatNodeTimes> seat_node_times_from_json(const Json& json) {
  return read_noun<SeatNodeTimes>(json, "a seat's node times");
}

Json to_json(const SeatFailure& failure) {
  return write_value(
      SeatFailureForm{std::string(to_string(failure.verdict)), failure.sentence, failure.alive});
}
Result<SeatFailure> seat_failure_from_json(const Json& json) {
  ASSIGN_OR_RETURN(const SeatFailureForm form,
                   read_noun<SeatFailureForm>(json, "a seat's failure"));
  return SeatFailure{parse_verdict(form.verdict).value_or(Verdict::engine_failed), form.sentence,
                     form.alive};
}

}  // namespace kbeam
