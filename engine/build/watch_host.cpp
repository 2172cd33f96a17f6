// The program that runs a candidate under a sanitizer: every tensor and every scratch buffer in an
// allocation of exactly its size, every worker a thread. Compiled with the candidate's sanitizer
// when it is needed (watched_build.cpp holds this text); no part of kbeam itself. Judges nothing:
// the outputs go back to whoever asked.
#include <dlfcn.h>
#include <fcntl.h>
#include <kbeam/plan_abi.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "model/watch_job.h"

// A finding ends the program. No leak check of the sanitizer: it would have to stop threads by
// ptrace. LeftBehind counts what calls keep instead.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0:exitcode=86:handle_abort=0:detect_stack_use_after_return=1";
}
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=0";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "halt_on_error=1:exitcode=86:report_signal_unsafe=0";
}

// Of AddressSanitizer; absent under another.
extern "C" __attribute__((weak)) std::size_t __sanitizer_get_current_allocated_bytes();

namespace {

using namespace kbeam::watch;

constexpr int kFinding = 86;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "watch host: %s\n", what.c_str());
  std::_Exit(85);
}

// Memory that a sanitizer knows the end of, filled with what no honest kernel counts on: 0xff bytes
// are NaNs.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    if (posix_memalign(&memory_, 64, std::max<std::size_t>(bytes, 1)) != 0)
      give_up("no memory for " + std::to_string(bytes) + " bytes");
    std::memset(memory_, 0xff, bytes_);
  }
  ~Buffer() { std::free(memory_); }
  Buffer(Buffer&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) {
    other.memory_ = nullptr;
  }
  Buffer& operator=(Buffer&&) = delete;
  void* data() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

struct Step {
  kbeam_step step;
  std::vector<std::max_align_t> closure;
};

// The host side of the plan interface. The plan was recorded and checked before, so a mistake here
// only has to be told.
struct Recorder {
  const Case& the_case;
  int workers;
  std::vector<Step> steps{};
  std::vector<Buffer> scratch{};
  std::string refusal{};
  bool uses_parallel_for = false;

  static Recorder& of(void* self) { return *static_cast<Recorder*>(self); }

  std::int32_t find(const char* name, std::int32_t role, kbeam_buffer* found) {
    for (std::int32_t id = 0; id < the_case.tensor_count; ++id) {
      const Tensor& tensor = the_case.tensors[id];
      if (std::strncmp(tensor.name, name, kNameBytes) != 0 || tensor.role != role) continue;
      found->id = id;
      found->rank = tensor.rank;
      std::copy_n(tensor.dim, KBEAM_MAX_RANK, found->dim);
      std::copy_n(tensor.stride, KBEAM_MAX_RANK, found->stride);
      return id;
    }
    refusal = std::string("the plan asks for an unknown tensor ") + name;
    return -1;
  }

  std::int64_t axis(const char* name) {
    for (std::int32_t index = 0; index < the_case.axis_count; ++index)
      if (std::strncmp(the_case.axes[index].name, name, kNameBytes) == 0)
        return the_case.axes[index].value;
    refusal = std::string("the plan asks for an unknown axis ") + name;
    return 1;
  }

  void add(const kbeam_step& step) {
    Step kept{step,
              std::vector<std::max_align_t>((step.closure_bytes + sizeof(std::max_align_t) - 1) /
                                            sizeof(std::max_align_t))};
    std::memcpy(kept.closure.data(), step.closure, step.closure_bytes);
    uses_parallel_for |= step.count != 1;
    steps.push_back(std::move(kept));
  }

  kbeam_host host() {
    kbeam_host host{};
    host.abi = KBEAM_ABI;
    host.workers = workers;
    host.self = this;
    host.find_buffer = [](void* self, const char* name, std::int32_t role, std::int32_t,
                          kbeam_buffer* found) { return of(self).find(name, role, found); };
    host.axis = [](void* self, const char* name) { return of(self).axis(name); };
    host.scratch = [](void* self, std::int64_t bytes, std::int32_t copies) {
      Recorder& recorder = of(self);
      recorder.scratch.emplace_back(static_cast<std::size_t>(bytes) *
                                    static_cast<std::size_t>(copies));
      return static_cast<std::int32_t>(recorder.the_case.tensor_count +
                                       static_cast<int>(recorder.scratch.size()) - 1);
    };
    host.add_step = [](void* self, const kbeam_step* step) { of(self).add(*step); };
    host.note = [](void*, const char*, const char*) {};
    host.fail = [](void* self, std::int32_t, const char* message) { of(self).refusal = message; };
    return host;
  }
};

// A call left the direction flag set. It is looked at right behind the call, and put right: this
// program's own copies would run backwards too.
std::atomic<bool> left_backwards{false};

void note_direction() {
#if defined(__x86_64__)
  unsigned long flags = 0;
  asm volatile("pushfq\n\tpopq %0\n\tcld" : "=r"(flags) : : "memory", "cc");
  if ((flags & 0x400) != 0) left_backwards = true;
#endif
}

// Threads that begin and end with the step: a sanitizer sees where one step waits for another.
void on_every_worker(int workers, const std::function<void(int)>& job) {
  std::vector<std::thread> helpers;
  for (int worker = 1; worker < workers; ++worker) helpers.emplace_back(job, worker);
  job(0);
  for (std::thread& helper : helpers) helper.join();
}

void run_step(const Step& step, void* const* buffers, int workers) {
  const std::int64_t count = step.step.count;
  const auto invoke = [&](std::int64_t begin, std::int64_t end, int worker) {
    if (begin < end) step.step.invoke(step.closure.data(), buffers, begin, end, worker);
    note_direction();
  };
  if (count == 1) return invoke(0, 1, 0);
  const std::int64_t grain = step.step.grain;
  if (grain == 0)
    return on_every_worker(workers, [&](int worker) {
      invoke(count * worker / workers, count * (worker + 1) / workers, worker);
    });
  // In turn rather than as workers come free: every worker gets work, whoever is quicker.
  on_every_worker(workers, [&](int worker) {
    for (std::int64_t begin = grain * worker; begin < count; begin += grain * workers)
      invoke(begin, std::min(count, begin + grain), worker);
  });
}

// What a caller would find changed after a call: the library runs kernels in its user's process.
class LeftBehind {
 public:
  LeftBehind() : before_(look()) {}

  // Ends the program with a finding when something is not as it was.
  void expect_nothing() const {
    const State now = look();
    for (int number = 1; number < kSignals; ++number) {
      if (now.blocked[number] != before_.blocked[number])
        find("blocks or unblocks signal " + std::to_string(number) + " of its caller");
      if (now.handlers[number] != before_.handlers[number])
        find("handles signal " + std::to_string(number) + " of its caller");
    }
    for (int number = 0; number < kDescriptors; ++number)
      if (now.open[number] != before_.open[number])
        find((now.open[number] ? "leaves descriptor " : "closes descriptor ") +
             std::to_string(number));
    if (now.environment != before_.environment) find("changes the environment");
    if (now.new_handler != before_.new_handler || now.terminate != before_.terminate)
      find("leaves a handler of the language behind");
    if (now.x87_mode != before_.x87_mode) find("leaves another mode of the x87 unit");
    if (now.x87_in_use != before_.x87_in_use) find("leaves values on the x87 stack");
    if (left_backwards) find("leaves the direction flag set");
  }
  // The same calls again: `growth` is what they kept.
  static void expect_kept(std::size_t growth, std::size_t allowed, const char* when) {
    if (growth > allowed)
      find("keeps " + std::to_string(growth) + " bytes of memory " + when + " a call");
  }

 private:
  static constexpr int kSignals = 65;
  static constexpr int kDescriptors = 256;
  struct State {
    bool blocked[kSignals] = {};
    void* handlers[kSignals] = {};
    bool open[kDescriptors] = {};
    std::string environment;
    std::new_handler new_handler = nullptr;
    std::terminate_handler terminate = nullptr;
    unsigned x87_mode = 0;
    unsigned x87_in_use = 0;
  };

  static State look() {
    State state;
#if defined(__x86_64__)
    struct {
      unsigned control, status, tags, rest[4];
    } x87{};
    asm volatile("fnstenv %0\n\tfldenv %0" : "+m"(x87));
    state.x87_mode = x87.control & 0xffff;
    state.x87_in_use = ~x87.tags & 0xffff;
#endif
    sigset_t blocked;
    sigemptyset(&blocked);
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (int number = 1; number < kSignals; ++number) {
      state.blocked[number] = sigismember(&blocked, number) == 1;
      struct sigaction action {};
      if (sigaction(number, nullptr, &action) == 0)
        state.handlers[number] = reinterpret_cast<void*>(action.sa_handler);
    }
    for (int number = 0; number < kDescriptors; ++number)
      state.open[number] = fcntl(number, F_GETFD) != -1;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
      state.environment += std::string(*entry) + '\n';
    state.new_handler = std::get_new_handler();
    state.terminate = std::get_terminate();
    return state;
  }

  [[noreturn]] static void find(const std::string& what) {
    std::fprintf(stderr, "LEFT BEHIND: %s\n", what.c_str());
    std::_Exit(kFinding);
  }

  State before_;
};

std::size_t allocated() {
  return __sanitizer_get_current_allocated_bytes == nullptr
             ? 0
             : __sanitizer_get_current_allocated_bytes();
}

// Twice: what the first call made for all later ones (a table, say) is small or it is too much, and
// the second keeps nothing.
void run_steps(const Recorder& recorder, void* const* buffers, int workers) {
  constexpr std::size_t kKeptOnce = 64 << 10;
  const LeftBehind left;
  std::size_t before = allocated();
  for (const std::size_t allowed : {kKeptOnce, std::size_t{0}}) {
    for (const Step& step : recorder.steps) run_step(step, buffers, workers);
    left.expect_nothing();
    const std::size_t after = allocated();
    LeftBehind::expect_kept(after > before ? after - before : 0, allowed,
                            allowed > 0 ? "after" : "with");
    before = after;
  }
}

struct Regions {
  const std::byte* inputs;
  std::byte* outputs;
  Progress& progress() const { return *reinterpret_cast<Progress*>(outputs); }
};

void run_case(const Case& the_case, int workers, kbeam_plan_function* plan,
              const Regions& regions) {
  Recorder recorder{the_case, workers};
  const kbeam_host host = recorder.host();
  try {
    plan(&host);
  } catch (const std::exception& thrown) {
    recorder.refusal = thrown.what();
  }
  if (!recorder.refusal.empty()) {
    recorder.refusal.copy(regions.progress().refusal, kTextBytes - 1);
    give_up(recorder.refusal);
  }
  regions.progress().uses_parallel_for |= recorder.uses_parallel_for ? 1 : 0;
  std::vector<Buffer> tensors;
  std::vector<void*> buffers;
  for (std::int32_t id = 0; id < the_case.tensor_count; ++id) {
    const Tensor& tensor = the_case.tensors[id];
    tensors.emplace_back(tensor.bytes);
    if (tensor.role == KBEAM_INPUT)
      std::memcpy(tensors.back().data(), regions.inputs + tensor.offset, tensor.bytes);
    buffers.push_back(tensors.back().data());
  }
  for (const Buffer& buffer : recorder.scratch) buffers.push_back(buffer.data());
  run_steps(recorder, buffers.data(), workers);
  for (std::int32_t id = 0; id < the_case.tensor_count; ++id)
    if (the_case.tensors[id].role == KBEAM_OUTPUT)
      std::memcpy(regions.outputs + the_case.tensors[id].offset,
                  buffers[static_cast<std::size_t>(id)], the_case.tensors[id].bytes);
}

std::byte* map(const char* descriptor, int protection) {
  const int number = std::atoi(descriptor);
  struct stat about {};
  if (fstat(number, &about) != 0) give_up("cannot look at the shared memory");
  void* memory =
      mmap(nullptr, static_cast<std::size_t>(about.st_size), protection, MAP_SHARED, number, 0);
  if (memory == MAP_FAILED) give_up("cannot map the shared memory");
  return static_cast<std::byte*>(memory);
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) give_up("usage: host MODULE INPUT_DESCRIPTOR OUTPUT_DESCRIPTOR");
  const Regions regions{map(words[2], PROT_READ), map(words[3], PROT_READ | PROT_WRITE)};
  void* const module = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) give_up(dlerror());
  auto* const plan = reinterpret_cast<kbeam_plan_function*>(dlsym(module, "kbeam_candidate_plan"));
  if (plan == nullptr) give_up("no KBEAM_PLAN in the module");
  const auto& job = *reinterpret_cast<const Job*>(regions.inputs);
  const auto* const cases = reinterpret_cast<const Case*>(regions.inputs + sizeof(Job));
  for (std::int32_t index = 0; index < job.case_count; ++index) {
    regions.progress().started = index + 1;
    run_case(cases[index], job.workers, plan, regions);
    regions.progress().ended = index + 1;
  }
  return 0;
}
