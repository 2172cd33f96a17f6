// kbeam-planner REQUEST_DESCRIPTOR: loads one CUDA module without a GPU, runs its plan functions
// and writes what they recorded. It is fenced in by its parent and by its own system call filter,
// holds nothing worth stealing, and decides nothing.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/defence.h"
#include "planner/cuda_registration.h"
#include "planner/frames.h"
#include "planner/plan_recorder.h"
#include "planner/planner_clock.h"
#include "runner/system_call_filter.h"
#include "target/cuda/planner_wire.h"

namespace kbeam::planner {
namespace {

namespace wire = planner_wire;

struct Work {
  std::string module;
  RecorderWorld world;
  std::vector<RecorderRequest> requests;
  std::vector<std::size_t> order;
};

[[noreturn]] void give_up() {
  _exit(wire::kCannotPlan);
}

std::string read_request(int descriptor) {
  struct stat about {};
  if (fstat(descriptor, &about) != 0) give_up();
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t step =
        pread(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (step <= 0) give_up();
    done += static_cast<std::size_t>(step);
  }
  close(descriptor);
  return text;
}

RecorderRequest read_one(const Json& json) {
  RecorderRequest request;
  request.entry_name = wire::kEntryNames[json.at("entry").get<std::size_t>()];
  for (const Json& tensor : json.at("tensors"))
    request.tensors.push_back({tensor.at("name").get<std::string>(),
                               static_cast<kbeam_role>(tensor.at("role").get<int>()),
                               static_cast<kbeam_element_type>(tensor.at("type").get<int>()),
                               tensor.at("dims").get<std::vector<std::int64_t>>(),
                               tensor.at("strides").get<std::vector<std::int64_t>>()});
  for (const Json& buffer : json.at("buffers")) {
    const std::string kind = buffer.at("kind").get<std::string>();
    request.buffers.push_back({kind == to_string(BufferKind::input)    ? BufferKind::input
                               : kind == to_string(BufferKind::output) ? BufferKind::output
                                                                       : BufferKind::control,
                               buffer.at("name").get<std::string>(),
                               buffer.at("bytes").get<std::int64_t>(),
                               {}});
  }
  request.axes = json.at("axes").get<std::map<std::string, std::int64_t>>();
  request.texts = json.at("texts").get<std::map<std::string, std::string>>();
  return request;
}

// The parent wrote it: whatever is wrong with it is kbeam's own mistake.
Work read_work(int descriptor) {
  const Json json = Json::parse(read_request(descriptor));
  Work work;
  work.module = json.at("module").get<std::string>();
  set_clock_s(json.at("clock_s").get<std::int64_t>());
  auto device = device_from_json(json.at("device"));
  if (!device.ok()) give_up();
  work.world.device = *device;
  work.world.most_nodes = json.at("most_nodes").get<std::int64_t>();
  work.world.most_scratch_bytes = json.at("most_scratch_bytes").get<std::int64_t>();
  work.world.most_table_bytes = json.at("most_table_bytes").get<std::int64_t>();
  for (const auto& [name, numbers] : json.at("kernels").items())
    work.world.kernels[name] = {.registers = numbers.at(0).get<int>(),
                                .static_shared_bytes = numbers.at(1).get<std::int64_t>(),
                                .max_threads = numbers.at(2).get<int>()};
  for (const Json& one : json.at("requests")) work.requests.push_back(read_one(one));
  work.order = json.at("order").get<std::vector<std::size_t>>();
  return work;
}

void report_forbidden_call(int, siginfo_t* about, void*) {
  write_frame(wire::kForbidden, about->si_syscall, "");
  _exit(126);
}

// Loading may open libraries; afterwards nothing is opened, mapped for execution or started.
// Returns the filter for what comes after loading; null where there is none.
const sock_fprog* fence_loading() {
  if (!defence_is_on(Defence::system_call_filter)) return nullptr;
  const sock_fprog* const running =
      runner::guard_filter(runner::make_filter(runner::Phase::running, runner::Libraries::none));
  if (running == nullptr || !runner::install_filter(runner::make_filter(
                                runner::Phase::loading, runner::Libraries::none, running)))
    give_up();
  return running;
}

void answer(const Work& work, std::size_t position, kbeam_cuda_plan_function* function) {
  const Recording recording =
      record_plan(function, work.world, work.requests[work.order[position]]);
  const auto index = static_cast<std::int64_t>(position);
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (recording.not_supported)
    return write_frame(wire::kUnsupported, index, *recording.not_supported);
  if (recording.out_of_memory) return write_frame(wire::kNoMemory, index, "");
  if (!recording.mistakes.empty())
    return write_frame(wire::kMistakes, index, text(Json(recording.mistakes)));
  write_frame(wire::kPlan, index, text(to_json(recording.plan)));
}

int run(int descriptor) {
  open_reply();
  const Work work = read_work(descriptor);
  struct sigaction action {};
  action.sa_sigaction = report_forbidden_call;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  // Both programs are made before anything foreign is here: making them needs calls that the first
  // one refuses.
  const sock_fprog* const running = fence_loading();
  write_frame(wire::kReady, 0, "");

  void* const module = dlopen(work.module.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    write_frame(wire::kCannotLoad, 0, dlerror());
    return 0;
  }
  if (running != nullptr && !runner::install_filter(*running)) give_up();
  write_frame(wire::kLoaded, 0, "");
  for (std::size_t i = 0; i < work.order.size(); ++i) {
    const std::string& name = work.requests[work.order[i]].entry_name;
    auto* const function = reinterpret_cast<kbeam_cuda_plan_function*>(dlsym(module, name.c_str()));
    if (function != nullptr) {
      answer(work, i, function);
      continue;
    }
    const char* const macro = name == wire::kEntryNames[0]   ? "KBEAM_PLAN"
                              : name == wire::kEntryNames[1] ? "KBEAM_GENERATE"
                                                             : "KBEAM_CHECK";
    write_frame(wire::kMistakes, static_cast<std::int64_t>(i),
                Json::array({std::string("the file has no ") + macro}).dump());
  }
  write_frame(wire::kEnd, 0, "");
  return 0;
}

}  // namespace
}  // namespace kbeam::planner

int main(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (argc != 2) kbeam::planner::give_up();
  // The module's destructors have nothing to do here.
  _exit(kbeam::planner::run(std::atoi(argv[1])));
}
