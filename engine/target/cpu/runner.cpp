// The judge's side of the protocol: one command, one resume, one confirmed stop.
#include "target/cpu/runner.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/affinity.h"
#include "base/defence.h"
#include "base/entropy.h"
#include "target/cpu/call_memory.h"
#include "target/cpu/control_page.h"
#include "target/cpu/explain.h"
#include "target/cpu/launcher.h"
#include "target/cpu/poison.h"
#include "target/cpu/runner_levels.h"
#include "target/cpu/sandbox.h"

namespace kbeam {
namespace {

using control::Command;
using control::Status;

constexpr int kLargestTeam = 1024;
constexpr double kLayOutTimeout_s = 60;
constexpr double kEmptyCallTimeout_s = 10;

const char* const kSystemLibraries[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64",
                                        "/usr/local/lib"};
const char* const kLibraryFiles[] = {"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu",
                                     "/sys/devices/system/node"};

std::size_t whole_pages(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  return static_cast<std::size_t>((std::max<std::int64_t>(bytes, 1) + kPage - 1) / kPage * kPage);
}

std::size_t whole_lines(std::int64_t bytes) {
  constexpr std::int64_t kLine = 64;
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0) / kLine * kLine);
}

template <std::size_t kSize>
void put_name(char (&into)[kSize], const std::string& name) {
  std::memset(into, 0, kSize);
  std::memcpy(into, name.data(), std::min(name.size(), kSize - 1));
}

class SandboxedRunner final : public Runner {
 public:
  static Result<Outcome<std::unique_ptr<Runner>>> start(const RunnerOptions& options,
                                                        SandboxLevel level);
  ~SandboxedRunner() override { child_.reset(); }

  SandboxLevel sandbox() const override { return level_; }
  std::vector<std::string> weaknesses() const override;
  Outcome<PlannedCase> plan(std::size_t row, const std::vector<TensorShape>& tensors,
                            const AxisValues& axes, double timeout_s) override;
  Result<void> lay_out(const std::vector<TensorShape>& tensors, int count) override;
  const Slot& slot(int index) const override {
    return memory_.slots().at(static_cast<std::size_t>(index));
  }
  void poison(int slot, std::uint64_t key) override { memory_.poison(slot, key); }
  void flush(int slot) override { memory_.flush(slot); }
  std::optional<RunnerFailure> inspect(int slot) override { return memory_.inspect(slot); }
  std::optional<std::string> find_unwritten(int slot) const override {
    return memory_.find_unwritten(slot);
  }
  void refill_scratch(std::int64_t bytes, std::uint64_t key) override;
  Outcome<CallTime> call(int plan_id, int slot, double timeout_s) override;
  Outcome<CallTime> empty_call() override;

 private:
  SandboxedRunner(RunnerOptions options, SandboxLevel level, SharedRegion page, CallMemory memory,
                  SharedRegion scratch)
      : options_(std::move(options)),
        level_(level),
        page_memory_(std::move(page)),
        memory_(std::move(memory)),
        scratch_(std::move(scratch)) {}

  control::Page& page() { return *reinterpret_cast<control::Page*>(page_memory_.data()); }
  bool filters_system_calls() const {
    return has_seccomp() && level_ > SandboxLevel::none &&
           defence_is_on(Defence::system_call_filter);
  }
  void write_settings();
  Result<void> launch();
  Result<void> confirm_sandbox(int filters) const;
  RunnerFailure load();

  struct Answer {
    ChildEvent event;
    std::optional<RunnerFailure> failure;
  };
  Answer send(control::Request request, double timeout_s, const std::string& during);
  RunnerFailure judge_stop(const ChildEvent& event, double timeout_s, const std::string& during);
  Outcome<PlannedCase> read_plan(const std::string& during);
  RunnerFailure break_off(RunnerFailure failure);

  RunnerOptions options_;
  SandboxLevel level_;
  SharedRegion page_memory_;
  CallMemory memory_;
  SharedRegion scratch_;  // what a plan asks for lies at its end
  std::unique_ptr<Child> child_;
  std::uint64_t sequence_ = 0;
  std::int64_t calls_ = 0;
  std::optional<RunnerFailure> broken_;
};

Result<void> validate(const RunnerOptions& options) {
  const auto refuse = [](const std::string& what, const std::string& advice) {
    return Error{ErrorCode::bad_input, "start a runner", what, advice};
  };
  std::error_code trouble;
  if (!std::filesystem::is_regular_file(options.runner, trouble))
    return refuse("no runner at " + options.runner.string(), "build or reinstall kbeam-runner");
  if (options.modules.empty() || options.modules.size() > control::kMaxModules)
    return refuse(fmt::format("{} modules", options.modules.size()), "give 1 to 64");
  std::size_t path_bytes = 0;
  for (const auto& module : options.modules) {
    path_bytes += module.string().size() + 1;
    if (!module.is_absolute() || !std::filesystem::is_regular_file(module, trouble))
      return refuse("no module at " + module.string(), "give the absolute path of a shared object");
  }
  if (path_bytes > control::kPathsBytes)
    return refuse("the module paths are too long", "use a shorter folder");
  if (options.workers < 1 || options.workers > kLargestTeam)
    return refuse(fmt::format("{} workers", options.workers), "give 1 to 1024");
  if (options.cpus.size() > std::size(control::Settings{}.cpus) ||
      std::any_of(options.cpus.begin(), options.cpus.end(),
                  [](int cpu) { return cpu < 0 || cpu >= 1024; }))
    return refuse("the list of processors is not usable", "give at most 256 numbers below 1024");
  return {};
}

Result<Outcome<std::unique_ptr<Runner>>> SandboxedRunner::start(const RunnerOptions& options,
                                                                SandboxLevel level) {
  RETURN_IF_ERROR(validate(options));
  ASSIGN_OR_RETURN(auto page, SharedRegion::make("kbeam-control", sizeof(control::Page),
                                                 RegionAccess::runner_writes));
  ASSIGN_OR_RETURN(auto memory, CallMemory::make(options.input_bytes, options.output_bytes));
  const auto mapped = static_cast<std::int64_t>(memory.inputs().bytes() + memory.outputs().bytes());
  if (options.memory_bytes <= mapped)
    return Error{ErrorCode::bad_input, "start a runner",
                 fmt::format("inputs and outputs take {} bytes of the {} that the process may map",
                             mapped, options.memory_bytes),
                 "raise memory_bytes or use fewer slots"};
  // Mapped from the start, so that it counts: half of what is left stays for everything else.
  const std::int64_t most_scratch =
      std::min(options.scratch_bytes, (options.memory_bytes - mapped) / 2);
  ASSIGN_OR_RETURN(auto scratch, SharedRegion::make("kbeam-scratch", whole_pages(most_scratch),
                                                    RegionAccess::runner_writes));
  std::unique_ptr<SandboxedRunner> runner(
      new SandboxedRunner(options, level, std::move(page), std::move(memory), std::move(scratch)));
  runner->write_settings();
  RETURN_IF_ERROR(runner->launch());
  if (const auto failure = runner->load(); failure.verdict != Verdict::accepted)
    return Outcome<std::unique_ptr<Runner>>{std::nullopt, failure};
  if (level >= SandboxLevel::landlock_seccomp && runner->filters_system_calls()) {
    // A module that kept the second filter away still runs under the first; it is refused all the
    // same.
    if (const auto confirmed = runner->confirm_sandbox(2); !confirmed.ok())
      return Outcome<std::unique_ptr<Runner>>{
          std::nullopt, {Verdict::broke_sandbox, "while loading: " + confirmed.error().happened}};
  }
  return Outcome<std::unique_ptr<Runner>>{std::move(runner), {}};
}

void SandboxedRunner::write_settings() {
  control::Settings& settings = page().settings;
  settings.workers = options_.workers;
  settings.module_count = static_cast<std::int32_t>(options_.modules.size());
  settings.filter_system_calls = filters_system_calls() ? 1 : 0;
  settings.may_use_libraries = options_.may_use_libraries ? 1 : 0;
  settings.cpu_count = static_cast<std::int32_t>(options_.cpus.size());
  std::copy(options_.cpus.begin(), options_.cpus.end(), settings.cpus);
  settings.input_bytes = memory_.inputs().bytes();
  settings.output_bytes = memory_.outputs().bytes();
  settings.scratch_bytes = scratch_.bytes();
  char* at = settings.module_paths;
  for (const auto& module : options_.modules) {
    const std::string path = module.string();
    std::memcpy(at, path.c_str(), path.size() + 1);
    at += path.size() + 1;
  }
}

Result<void> SandboxedRunner::launch() {
  LaunchRequest request;
  request.runner = options_.runner;
  request.cpus = options_.cpus;
  request.fence.level = level_;
  if (defence_is_on(Defence::memory_limit)) request.fence.memory_bytes = options_.memory_bytes;
  request.fence.executable.assign(std::begin(kSystemLibraries), std::end(kSystemLibraries));
  request.fence.executable.push_back(options_.runner);
  request.fence.readable = options_.modules;
  request.fence.readable.emplace_back("/etc/ld.so.cache");
  if (options_.may_use_libraries)
    request.fence.readable.insert(request.fence.readable.end(), std::begin(kLibraryFiles),
                                  std::end(kLibraryFiles));
  request.page_descriptor = page_memory_.descriptor();
  request.input_descriptor = memory_.inputs().descriptor();
  request.output_descriptor = memory_.outputs().descriptor();
  request.scratch_descriptor = scratch_.descriptor();
  ASSIGN_OR_RETURN(child_, Child::launch(request));

  const ChildEvent event = child_->await(options_.load_timeout_s);
  if (event.state != ChildState::stopped || event.number != SIGSTOP || event.timed_out) {
    const Incident incident{event, page().reply.fault, "before any candidate was loaded",
                            options_.load_timeout_s, child_->printed()};
    return Error{ErrorCode::unavailable, "start " + options_.runner.string(),
                 explain(incident, memory_).sentence, "run `kbeam doctor` to see what is missing"};
  }
  return level_ >= SandboxLevel::landlock_seccomp && filters_system_calls() ? confirm_sandbox(1)
                                                                            : Result<void>();
}

Result<void> SandboxedRunner::confirm_sandbox(int filters) const {
  const auto status = child_->status();
  // Kernels before 5.9 do not count filters; the mode alone has to do there.
  if (status && status->threads == options_.workers && status->seccomp_mode == 2 &&
      status->no_new_privileges == 1 &&
      (status->seccomp_filters == filters || status->seccomp_filters == 0))
    return {};
  return Error{ErrorCode::unavailable, "confirm the sandbox of a candidate",
               status
                   ? fmt::format("the kernel reports {} threads, seccomp mode {} with {} filters, "
                                 "no_new_privs {}; expected {}, 2, {}, 1",
                                 status->threads, status->seccomp_mode, status->seccomp_filters,
                                 status->no_new_privileges, options_.workers, filters)
                   : std::string("the process has no readable status"),
               "run kbeam doctor"};
}

RunnerFailure SandboxedRunner::load() {
  control::Request request{};
  request.command = Command::load;
  Answer answer = send(request, options_.load_timeout_s, "while loading the candidate");
  if (answer.failure) return *answer.failure;
  if (page().reply.status != Status::done)
    return break_off(
        {Verdict::refused_object,
         "the candidate cannot be loaded: " + read_text(page().reply.text, control::kTextBytes)});
  return {Verdict::accepted, ""};
}

std::vector<std::string> SandboxedRunner::weaknesses() const {
  std::vector<std::string> sentences = weaknesses_of(level_);
  if (!can_flush()) sentences.emplace_back("no cache flush on this processor: calls are not cold");
  return sentences;
}

SandboxedRunner::Answer SandboxedRunner::send(control::Request request, double timeout_s,
                                              const std::string& during) {
  if (broken_) return {{}, *broken_};
  request.sequence = ++sequence_;
  page().request = request;
  Answer answer;
  answer.event = child_->resume(defence_is_on(Defence::call_timeout) ? timeout_s : 0);
  if (answer.event.state == ChildState::stopped && answer.event.number == SIGSTOP &&
      !answer.event.timed_out && page().reply.sequence == sequence_)
    return answer;
  answer.failure = judge_stop(answer.event, timeout_s, during);
  return answer;
}

RunnerFailure SandboxedRunner::judge_stop(const ChildEvent& event, double timeout_s,
                                          const std::string& during) {
  if (event.state == ChildState::stopped && event.number == SIGSTOP && !event.timed_out)
    return break_off(
        {Verdict::broke_sandbox, "stopped its own process before the work was done, " + during});
  return break_off(
      explain({event, page().reply.fault, during, timeout_s, child_->printed()}, memory_));
}

RunnerFailure SandboxedRunner::break_off(RunnerFailure failure) {
  broken_ = RunnerFailure{failure.verdict, "the runner is gone since: " + failure.sentence};
  child_.reset();
  return failure;
}

Outcome<PlannedCase> SandboxedRunner::plan(std::size_t row, const std::vector<TensorShape>& tensors,
                                           const AxisValues& axes, double timeout_s) {
  if (row >= options_.modules.size() || tensors.size() > control::kMaxTensors ||
      axes.size() > control::kMaxAxes)
    return {std::nullopt,
            {Verdict::engine_failed,
             fmt::format("plan of row {} with {} tensors and {} axes was asked for", row,
                         tensors.size(), axes.size())}};
  control::Request request{};
  request.command = Command::plan;
  request.row = static_cast<std::uint32_t>(row);
  request.tensor_count = static_cast<std::uint32_t>(tensors.size());
  request.axis_count = static_cast<std::uint32_t>(axes.size());
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    control::Tensor& wire = page().tensors[index];
    wire = {};
    put_name(wire.name, tensors[index].name);
    wire.role = tensors[index].role;
    wire.type = tensors[index].type;
    wire.rank = static_cast<std::int32_t>(
        std::min<std::size_t>(tensors[index].dims.size(), KBEAM_MAX_RANK));
    std::fill_n(wire.dim, KBEAM_MAX_RANK, 1);
    std::copy_n(tensors[index].dims.begin(), wire.rank, wire.dim);
    std::copy_n(tensors[index].strides.begin(), wire.rank, wire.stride);
  }
  std::size_t position = 0;
  for (const auto& [name, value] : axes) {
    put_name(page().axes[position].name, name);
    page().axes[position++].value = value;
  }
  const std::string during = fmt::format("in the plan function of row {}", row);
  const Answer answer = send(request, timeout_s, during);
  if (answer.failure) return {std::nullopt, *answer.failure};
  return read_plan(during);
}

// The runner's own code answers these commands with `done` or not at all. Whatever else the page
// says was written by the candidate, so nothing of it is repeated: it may hold what the candidate
// must not tell.
RunnerFailure forged_reply(const std::string& during) {
  const bool checked = defence_is_on(Defence::reply_check);
  return {checked ? Verdict::broke_sandbox : Verdict::engine_failed,
          "the reply on the control page is not the runner's, " + during};
}

Outcome<PlannedCase> SandboxedRunner::read_plan(const std::string& during) {
  const control::Reply& reply = page().reply;
  const auto refuse = [&](Verdict verdict) -> Outcome<PlannedCase> {
    return {std::nullopt, {verdict, read_text(reply.text, control::kTextBytes)}};
  };
  switch (reply.status) {
    case Status::done:
      break;
    case Status::bad_plan:
      return refuse(Verdict::bad_plan);
    case Status::not_supported:
      return refuse(Verdict::not_supported);
    case Status::over_memory:
      return refuse(Verdict::over_memory);
    default:
      return {std::nullopt, break_off(forged_reply(during))};
  }
  PlannedCase planned;
  planned.plan_id = static_cast<int>(reply.plan_id);
  planned.scratch_bytes = reply.scratch_bytes;
  const char* at = reply.notes;
  const char* const end = reply.notes + control::kNotesBytes;
  const auto next = [&] {
    std::string text = read_text(at, static_cast<std::size_t>(end - at));
    at += std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(text.size()) + 1, end - at);
    return text;
  };
  for (std::uint32_t note = 0; note < reply.note_count && at < end; ++note) {
    std::string key = next();
    planned.notes[std::move(key)] = next();
  }
  return {std::move(planned), {}};
}

Result<void> SandboxedRunner::lay_out(const std::vector<TensorShape>& tensors, int count) {
  RETURN_IF_ERROR(memory_.lay_out(tensors, count, random_bits()));
  std::copy(memory_.extents().begin(), memory_.extents().end(), page().extents);
  control::Request request{};
  request.command = Command::lay_out;
  request.slot_count = static_cast<std::uint32_t>(count);
  request.tensor_count = static_cast<std::uint32_t>(tensors.size());
  const Answer answer = send(request, kLayOutTimeout_s, "while laying out the tensors");
  const std::string during = "while laying out the tensors";
  if (!answer.failure && page().reply.status != Status::done) break_off(forged_reply(during));
  if (answer.failure || page().reply.status != Status::done)
    return Error{ErrorCode::internal, "lay tensors out in the runner",
                 answer.failure ? answer.failure->sentence : forged_reply(during).sentence,
                 "start a fresh runner"};
  return {};
}

void SandboxedRunner::refill_scratch(std::int64_t bytes, std::uint64_t key) {
  // How many there are is the candidate's word.
  const std::size_t filled = std::min(scratch_.bytes(), whole_lines(bytes));
  std::optional<Visit> visit;
  if (!options_.cpus.empty()) visit.emplace(options_.cpus.front());
  write_poison(scratch_.data() + (scratch_.bytes() - filled), filled, 0, {key, KBEAM_F32});
}

Outcome<CallTime> SandboxedRunner::call(int plan_id, int slot, double timeout_s) {
  control::Request request{};
  request.command = Command::call;
  request.plan_id = static_cast<std::uint32_t>(plan_id);
  request.slot = static_cast<std::uint32_t>(slot);
  const std::string during = fmt::format("in call {} (slot {})", ++calls_, slot);
  const Answer answer = send(request, timeout_s, during);
  if (answer.failure) return {std::nullopt, *answer.failure};
  if (page().reply.status != Status::done) return {std::nullopt, break_off(forged_reply(during))};
  if (!defence_is_on(Defence::judged_at_the_stop)) child_->resume(timeout_s);
  return {CallTime{answer.event.wall_ns}, {}};
}

Outcome<CallTime> SandboxedRunner::empty_call() {
  control::Request request{};
  request.command = Command::empty_call;
  const Answer answer = send(request, kEmptyCallTimeout_s, "in an empty call");
  if (answer.failure) return {std::nullopt, *answer.failure};
  return {CallTime{answer.event.wall_ns}, {}};
}

}  // namespace

Result<Outcome<std::unique_ptr<Runner>>> start_runner_at(const RunnerOptions& options,
                                                         SandboxLevel level) {
  return SandboxedRunner::start(options, level);
}

Result<Outcome<std::unique_ptr<Runner>>> Runner::start(const RunnerOptions& options) {
  const SandboxLevel level =
      defence_is_on(Defence::process_sandbox) ? best_sandbox() : SandboxLevel::none;
  if (level < options.least_sandbox)
    return Error{ErrorCode::unavailable, "start a sandboxed runner",
                 fmt::format("this machine offers at most \"{}\" and \"{}\" was asked for",
                             to_string(level), to_string(options.least_sandbox)),
                 "allow a weaker sandbox, which every verdict will then say"};
  return start_runner_at(options, level);
}

}  // namespace kbeam
