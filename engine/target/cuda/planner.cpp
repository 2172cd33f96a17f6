// The order of work: read the image out of the module, run the planner twice, explain what went
// wrong, compare, check. The second run plans everything twice and backwards, so that a plan that
// depends on what was planned before it shows.
#include "target/cuda/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/defence.h"
#include "base/files.h"
#include "base/foreign_json.h"
#include "base/hash.h"
#include "base/shown_text.h"
#include "target/cuda/planner_process.h"

namespace kbeam {
namespace {

namespace wire = planner_wire;

constexpr std::size_t kLongestSentence = 1000;

// One module with its image and the requests on it, by their place in the caller's list.
struct Module {
  std::filesystem::path path;
  std::filesystem::path absolute_path;  // the planner starts in another folder
  std::vector<std::size_t> requests;
  std::string image_bytes;
  std::string image_hash;
  DeviceImage image;
};

Planned refused(Verdict verdict, const std::string& sentence) {
  return {.verdict = verdict, .sentence = shown_line(sentence, kLongestSentence)};
}

Json form(const TensorShape& tensor) {
  return {{"name", tensor.name},
          {"role", static_cast<int>(tensor.role)},
          {"type", static_cast<int>(tensor.type)},
          {"dims", tensor.dims},
          {"strides", tensor.strides}};
}

Json form(const PlanRequest& request) {
  Json tensors = Json::array();
  for (const TensorShape& tensor : request.tensors) tensors.push_back(form(tensor));
  Json buffers = Json::array();
  for (const PlanBuffer& buffer : given_buffers(request.entry, request.tensors))
    buffers.push_back(
        {{"kind", to_string(buffer.kind)}, {"name", buffer.name}, {"bytes", buffer.bytes}});
  return {{"entry", static_cast<int>(request.entry)},
          {"tensors", tensors},
          {"buffers", buffers},
          {"axes", request.axes},
          {"texts", request.texts}};
}

Json form(const std::map<std::string, ImageKernel>& kernels) {
  Json object = Json::object();
  for (const auto& [name, kernel] : kernels)
    object[name] = {kernel.resources.registers, kernel.resources.static_shared_bytes,
                    kernel.resources.max_threads};
  return object;
}

// A call in one process: which request, and what came of it.
struct Step {
  std::size_t request = 0;  // of the module's list
  const PlannerFrame* answer = nullptr;
};

std::string name_of_signal(int number) {
  const char* const name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::string name_of_system_call(std::int64_t number) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number)), &std::free);
  return name ? name.get() : fmt::format("system call {}", number);
}

std::string where_it_was(const PlannerRun& run) {
  const bool loaded = std::any_of(run.frames.begin(), run.frames.end(),
                                  [](const PlannerFrame& f) { return f.kind == wire::kLoaded; });
  return loaded ? "in its plan function" : "while it was loaded";
}

// Why a run did not get to its end.
Planned explain_end(const PlannerRun& run, double timeout_s) {
  const std::string where = where_it_was(run);
  for (const PlannerFrame& frame : run.frames) {
    if (frame.kind == wire::kForbidden)
      return refused(Verdict::broke_sandbox, fmt::format("called {} {}; a plan may only compute",
                                                         name_of_system_call(frame.index), where));
    if (frame.kind == wire::kCannotLoad) {
      const bool lacks = frame.payload.find("undefined symbol") != std::string::npos;
      return refused(lacks ? Verdict::bad_plan : Verdict::refused_object,
                     "cannot be loaded: " + frame.payload +
                         (lacks ? "; a plan calls neither the CUDA runtime nor a library" : ""));
    }
  }
  if (run.timed_out)
    return refused(Verdict::timed_out,
                   fmt::format("did not end within {:g} s {}", timeout_s, where));
  if (run.signal == SIGSYS)
    return refused(Verdict::broke_sandbox, "made a system call that the sandbox forbids " + where);
  if (run.signal != 0)
    return refused(Verdict::crashed,
                   fmt::format("ended with {} {}", name_of_signal(run.signal), where));
  const bool said_end = !run.frames.empty() && run.frames.back().kind == wire::kEnd;
  if (run.garbled || (said_end && run.exit_code == 0))
    return refused(Verdict::bad_plan, "wrote into the planner's reply " + where);
  return refused(Verdict::crashed, fmt::format("ended the planner's process with exit code {} {}",
                                               run.exit_code, where));
}

// The frames of a whole run are ready, loaded, one answer a step, end.
bool is_whole(const PlannerRun& run, std::size_t steps) {
  return !run.garbled && !run.timed_out && run.exit_code == 0 && run.frames.size() == steps + 3 &&
         run.frames[0].kind == wire::kReady && run.frames[1].kind == wire::kLoaded &&
         run.frames.back().kind == wire::kEnd;
}

std::string short_text(const Json& value) {
  constexpr std::size_t kLongest = 60;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

// "nodes[3].grid[0] is 5 and 6".
std::string first_difference(const Json& a, const Json& b, const std::string& path) {
  if (a.type() == b.type() && a.is_array()) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (a[i] != b[i]) return first_difference(a[i], b[i], fmt::format("{}[{}]", path, i));
    return fmt::format("{} has {} and {} elements", path, a.size(), b.size());
  }
  if (a.type() == b.type() && a.is_object()) {
    for (const auto& [key, value] : a.items()) {
      const std::string inner = path.empty() ? key : path + "." + key;
      const auto other = b.find(key);
      if (other == b.end()) return inner + " is there only once";
      if (*other != value) return first_difference(value, *other, inner);
    }
    return (path.empty() ? "the whole" : path) + " has other fields";
  }
  return fmt::format("{} is {} and {}", path.empty() ? "the whole" : path, short_text(a),
                     short_text(b));
}

std::string difference_of(const PlannerFrame& a, const PlannerFrame& b) {
  if (a.kind != b.kind) return fmt::format("one run answers {}, the other {}", a.kind, b.kind);
  const Json first = parse_foreign_json(a.payload);
  const Json second = parse_foreign_json(b.payload);
  if (first.is_discarded() || second.is_discarded()) return "an answer is no JSON";
  return first_difference(first, second, "");
}

class ModulePlanner {
 public:
  ModulePlanner(const PlannerOptions& options, const DeviceDescription& device,
                const std::vector<PlanRequest>& requests, std::vector<Planned>& answers)
      : options_(options), device_(device), requests_(requests), answers_(answers) {
    constexpr std::int64_t kEndless = 1LL << 40;
    if (!defence_is_on(Defence::plan_rules)) limits_ = {INT_MAX, kEndless, kEndless};
    if (!defence_is_on(Defence::call_timeout)) timeout_s_ = static_cast<double>(kEndless);
    if (!defence_is_on(Defence::memory_limit)) memory_bytes_ = kEndless;
  }

  Result<void> plan(Module& module) {
    if (auto refusal = read_image(module)) return give_all(module, *refusal);
    std::vector<std::size_t> forwards, backwards;
    for (std::size_t i = 0; i < module.requests.size(); ++i) {
      forwards.push_back(i);
      backwards.insert(backwards.end(), 2, module.requests.size() - 1 - i);
    }
    // Distant times, so that a plan that looks at the clock differs. What ended before its time in
    // one run is not asked for another.
    ASSIGN_OR_RETURN(const PlannerRun first, run(module, forwards, /*clock_s=*/1'000'000'000));
    RETURN_IF_ERROR(check_readiness(first));
    if (!is_whole(first, forwards.size()))
      return give_all(module, explain_end(first, options_.timeout_s));
    ASSIGN_OR_RETURN(const PlannerRun second, run(module, backwards, /*clock_s=*/2'000'000'000));
    RETURN_IF_ERROR(check_readiness(second));
    if (!is_whole(second, backwards.size()))
      return give_all(module, explain_end(second, options_.timeout_s));
    for (std::size_t i = 0; i < module.requests.size(); ++i)
      answers_[module.requests[i]] = settle(module, i, first, second);
    return {};
  }

 private:
  std::optional<Planned> read_image(Module& module) {
    const Result<std::string> bytes = read_file(module.path);
    if (!bytes.ok()) return refused(Verdict::engine_failed, bytes.error().text());
    FatBinary binary = find_fat_binary(*bytes);
    if (!binary.refusal.empty()) return refused(Verdict::refused_object, binary.refusal);
    if (binary.bytes.empty()) return std::nullopt;
    ImageReading reading = read_device_image(binary.bytes);
    if (!reading.refusal.empty()) return refused(Verdict::refused_object, reading.refusal);
    if (!reading.image.writable_variables.empty() && defence_is_on(Defence::device_variables)) {
      constexpr std::size_t kMostNamed = 5;
      std::vector<std::string> names;
      for (const std::string& name : reading.image.writable_variables)
        if (names.size() < kMostNamed) names.push_back(readable_kernel_name(name));
      Planned answer = refused(
          Verdict::refused_object,
          fmt::format("keeps device variables from one call to the next: {}; use __constant__, "
                      "plan.table or plan.zeroed_scratch (printf and assert keep strings: $str)",
                      fmt::join(names, ", ")));
      answer.writable_variables = std::move(reading.image.writable_variables);
      return answer;
    }
    if (!reading.image.outside_functions.empty() && defence_is_on(Defence::device_heap))
      return refused(Verdict::refused_object,
                     fmt::format("calls {} of the driver's device library, whose memory lasts from "
                                 "one call to the next; use plan.scratch",
                                 fmt::join(reading.image.outside_functions, ", ")));
    if (reading.image.architecture != device_.device.architecture)
      return refused(Verdict::bad_plan,
                     fmt::format("is built for sm_{}, but the device is sm_{}",
                                 reading.image.architecture, device_.device.architecture));
    module.image = std::move(reading.image);
    module.image_hash = sha256_hex(binary.bytes);
    module.image_bytes = std::move(binary.bytes);
    // The compiler's own report wins.
    for (const std::size_t index : module.requests)
      for (const auto& [name, resources] : requests_[index].kernels)
        if (const auto kernel = module.image.kernels.find(name);
            kernel != module.image.kernels.end())
          kernel->second.resources = resources;
    return std::nullopt;
  }

  Result<void> give_all(const Module& module, const Planned& answer) {
    if (answer.verdict == Verdict::engine_failed)
      return Error{ErrorCode::io, "read the built module " + module.path.string(), answer.sentence,
                   "build it again"};
    for (const std::size_t index : module.requests) answers_[index] = answer;
    return {};
  }

  Result<PlannerRun> run(const Module& module, const std::vector<std::size_t>& order,
                         std::int64_t clock_s) {
    Json requests = Json::array();
    for (const std::size_t index : module.requests) requests.push_back(form(requests_[index]));
    const Json request = {{"module", module.absolute_path.string()},
                          {"clock_s", clock_s},
                          {"most_nodes", limits_.most_nodes},
                          {"most_scratch_bytes", limits_.most_scratch_bytes},
                          {"most_table_bytes", limits_.most_table_bytes},
                          {"device", to_json(device_.device)},
                          {"kernels", form(module.image.kernels)},
                          {"requests", requests},
                          {"order", order}};
    return run_planner({.planner = options_.planner,
                        .module = module.absolute_path,
                        .request = request.dump(),
                        .timeout_s = timeout_s_,
                        .memory_bytes = memory_bytes_});
  }

  // Before its first frame nothing foreign was in the process: what fails there is the engine's.
  Result<void> check_readiness(const PlannerRun& ran) {
    if (!ran.frames.empty() && ran.frames[0].kind == wire::kReady &&
        ran.exit_code != wire::kCannotPlan)
      return {};
    return Error{ErrorCode::unavailable, "run " + options_.planner.string(),
                 ran.signal != 0 ? "it ended with " + name_of_signal(ran.signal)
                                 : fmt::format("it ended with exit code {}", ran.exit_code),
                 "run `kbeam doctor` to see what is missing"};
  }

  Planned settle(const Module& module, std::size_t index, const PlannerRun& first,
                 const PlannerRun& second) {
    const PlannerFrame& answer = first.frames[2 + index];
    const std::size_t mirrored = 2 + 2 * (module.requests.size() - 1 - index);
    for (const PlannerFrame* other : {&second.frames[mirrored], &second.frames[mirrored + 1]})
      if (defence_is_on(Defence::plan_twice) &&
          (answer.kind != other->kind || answer.payload != other->payload))
        return refused(Verdict::bad_plan,
                       "differs between two runs: " + difference_of(answer, *other));
    const PlanRequest& request = requests_[module.requests[index]];
    if (answer.kind == wire::kUnsupported) return refused(Verdict::not_supported, answer.payload);
    if (answer.kind == wire::kNoMemory)
      return refused(Verdict::over_memory,
                     fmt::format("ran out of memory in its plan function; the limit is {} MiB",
                                 options_.memory_bytes >> 20));
    const Json json = parse_foreign_json(answer.payload);
    if (json.is_discarded()) return refused(Verdict::bad_plan, "its plan is no JSON");
    if (answer.kind == wire::kMistakes) return refuse_mistakes(json);
    if (answer.kind != wire::kPlan)
      return refused(Verdict::bad_plan, "wrote into the planner's reply in its plan function");
    return accept(module, request, json);
  }

  static Planned refuse_mistakes(const Json& json) {
    std::vector<std::string> sentences;
    if (json.is_array())
      for (const Json& sentence : json)
        if (sentence.is_string()) sentences.push_back(sentence.get<std::string>());
    return refused(Verdict::bad_plan, fmt::format("{}", fmt::join(sentences, "; ")));
  }

  Planned accept(const Module& module, const PlanRequest& request, const Json& json) {
    Result<LaunchPlan> plan = launch_plan_from_json(json);
    if (!plan.ok()) return refused(Verdict::bad_plan, "its plan: " + plan.error().happened);
    std::map<std::string, std::string> notes;
    for (const auto& [key, value] : plan->notes)
      notes[shown_line(key, kLongestSentence)] = shown_line(value, kLongestSentence);
    plan->notes = std::move(notes);
    bool launches = false;
    for (PlanNode& node : plan->nodes)
      if (node.kind == NodeKind::kernel) {
        node.kernel_name = readable_kernel_name(node.kernel);
        launches = true;
      }
    plan->device_hash = device_.hash;
    plan->image_hash = launches ? module.image_hash : std::string();
    const std::vector<std::string> mistakes =
        find_plan_mistakes(*plan, {.entry = request.entry,
                                   .tensors = request.tensors,
                                   .device = device_.device,
                                   .image = module.image,
                                   .limits = limits_,
                                   .may_use_libraries = request.may_use_libraries});
    if (!mistakes.empty() && defence_is_on(Defence::plan_rules))
      return refused(Verdict::bad_plan, fmt::format("{}", fmt::join(mistakes, "; ")));
    return {.verdict = Verdict::accepted,
            .sentence = {},
            .plan = std::move(*plan),
            .image = launches ? module.image_bytes : std::string(),
            .writable_variables = {}};
  }

  const PlannerOptions& options_;
  const DeviceDescription& device_;
  const std::vector<PlanRequest>& requests_;
  std::vector<Planned>& answers_;
  PlanLimits limits_ = options_.limits;
  double timeout_s_ = options_.timeout_s;
  std::int64_t memory_bytes_ = options_.memory_bytes;
};

}  // namespace

Result<DeviceDescription> read_device_description(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const Json json = parse_foreign_json(text);
  if (json.is_discarded())
    return Error{ErrorCode::corrupt, "read the device description " + path.string(),
                 "it is no JSON", "compare it with contract/devices/h200.json"};
  DeviceDescription description;
  ASSIGN_OR_RETURN(description.device, device_from_json(json));
  if (json.contains("name") && json["name"].is_string())
    description.name = json["name"].get<std::string>();
  description.hash = sha256_hex(to_json(description.device).dump());
  return description;
}

Result<std::vector<Planned>> make_launch_plans(const PlannerOptions& options,
                                               const std::vector<PlanRequest>& requests) {
  ASSIGN_OR_RETURN(const DeviceDescription device,
                   read_device_description(options.device_description));
  std::vector<Module> modules;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto known = std::find_if(modules.begin(), modules.end(), [&](const Module& module) {
      return module.path == requests[i].module;
    });
    Module& module = known != modules.end() ? *known : modules.emplace_back();
    module.path = requests[i].module;
    module.absolute_path = std::filesystem::absolute(requests[i].module);
    module.requests.push_back(i);
  }
  std::vector<Planned> answers(requests.size());
  ModulePlanner planner(options, device, requests, answers);
  for (Module& module : modules) RETURN_IF_ERROR(planner.plan(module));
  return answers;
}

}  // namespace kbeam
