// A module without device code whose plan function does what the axis "deed" says: honest things
// and everything that the planner must survive. Speaks the C interface, so it needs no CUDA
// toolkit.
#include "target/cuda/test_modules/planner_deeds.h"

#include <kbeam/launch_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*,
                                       void*, void*, int*);
extern "C" int cudaLaunchKernel(...);

namespace {

using kbeam::PlannerDeed;

constexpr kbeam_after kNext{nullptr, -1};

void fill_output(const kbeam_cuda_host* host, std::int64_t bytes, unsigned value) {
  kbeam_buffer output{};
  const int id = host->find_buffer(host->self, "y", KBEAM_OUTPUT, KBEAM_F32, &output);
  host->fill(host->self, {id, 0}, bytes, value, kNext);
}

void write_reply(const std::string& text) {
  // Whatever number the reply has: a hostile module tries them all.
  for (int descriptor = 3; descriptor < 64; ++descriptor)
    if (write(descriptor, text.data(), text.size()) < 0) continue;
}

std::string frame(const char* kind, const std::string& payload) {
  return "kbeam-planner " + std::string(kind) + " 0 " + std::to_string(payload.size()) + "\n" +
         payload + "\n";
}

volatile int never = 0;
void recurse(volatile char* above) {
  volatile char here[4096];
  here[0] = above == nullptr ? '0' : above[0];
  recurse(here);
  above = here;
}

std::jmp_buf place;
int count_calls = 0;

void do_deed(const kbeam_cuda_host* host, PlannerDeed deed) {
  switch (deed) {
    case PlannerDeed::honest:
      return;
    case PlannerDeed::exits:
      std::exit(0);
    case PlannerDeed::exits_at_once:
      _exit(0);
    case PlannerDeed::hangs:
      while (never == 0) {
      }
      return;
    case PlannerDeed::crashes:
      *reinterpret_cast<volatile int*>(16) = 1;
      return;
    case PlannerDeed::overflows_the_stack:
      return recurse(nullptr);
    case PlannerDeed::aborts:
      std::abort();
    case PlannerDeed::throws:
      throw std::runtime_error("no luck");
    case PlannerDeed::eats_memory: {
      std::vector<char*> kept;
      for (;;) kept.push_back(new char[64 << 20]);
    }
    case PlannerDeed::forks:
      if (fork() == 0) _exit(0);
      return;
    case PlannerDeed::starts_a_program:
      execl("/bin/true", "true", nullptr);
      return;
    case PlannerDeed::opens_a_socket:
      syscall(SYS_socket, 2, 1, 0);
      return;
    case PlannerDeed::reads_files: {
      std::ifstream file("/etc/passwd");
      std::string line;
      host->note(host->self, "file", std::getline(file, line) ? "read" : "not read");
      return;
    }
    case PlannerDeed::writes_files: {
      std::ofstream file("/tmp/kbeam-planner-was-here");
      file << "here";
      return;
    }
    case PlannerDeed::reads_the_environment: {
      int variables = 0;
      for (char** one = environ; one != nullptr && *one != nullptr; ++one)
        if (std::strcmp(*one, "LANG=C") != 0) ++variables;
      host->note(host->self, "environment", std::to_string(variables).c_str());
      return;
    }
    case PlannerDeed::depends_on_time:
      return fill_output(host, 4 + 4 * (std::time(nullptr) / 86400 % 8), 1);
    case PlannerDeed::depends_on_addresses:
      return fill_output(host, 4,
                         static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(host) >> 12 & 255));
    case PlannerDeed::depends_on_call_count:
      return fill_output(host, 4, static_cast<unsigned>(++count_calls));
    case PlannerDeed::depends_on_randomness: {
      unsigned value = 0;
      if (syscall(SYS_getrandom, &value, sizeof value, 0) < 0) return;
      return fill_output(host, 4, value & 255);
    }
    case PlannerDeed::writes_garbage:
      return write_reply("a plan, believe me");
    case PlannerDeed::forges_a_plan_and_exits:
      write_reply(frame("plan", "{\"buffers\":[]}") + frame("end", ""));
      _exit(0);
    case PlannerDeed::forges_an_answer_more:
      return write_reply(frame("plan", "{}"));
    case PlannerDeed::prints:
      std::puts("hello");
      std::fprintf(stderr, "hello\n");
      std::fflush(stdout);
      return;
    case PlannerDeed::floods_its_output: {
      const std::string text(1 << 20, 'x');
      for (;;)
        for (int descriptor = 1; descriptor < 64; ++descriptor)
          if (write(descriptor, text.data(), text.size()) < 0) continue;
    }
    case PlannerDeed::registers_a_fake_kernel: {
      static char fake;
      __cudaRegisterFunction(nullptr, &fake, nullptr, "_Z4fakev", 0, nullptr, nullptr, nullptr,
                             nullptr, nullptr);
      kbeam_launch launch{};
      launch.kernel = &fake;
      for (int i = 0; i < 3; ++i) launch.grid[i] = launch.block[i] = 1;
      launch.shared_carveout_percent = -1;
      launch.after = kNext;
      host->launch(host->self, &launch);
      return;
    }
    case PlannerDeed::launches_from_the_host:
      cudaLaunchKernel();
      return;
    case PlannerDeed::jumps_into_a_dead_frame:
      if (count_calls++ == 0) {
        if (setjmp(place) == 0) return;
        std::abort();
      }
      std::longjmp(place, 1);
    case PlannerDeed::makes_too_many_nodes:
      for (;;) fill_output(host, 4, 0);
    case PlannerDeed::makes_a_huge_table: {
      const std::string content(40 << 20, 'x');
      host->table(host->self, content.data(), static_cast<std::int64_t>(content.size()));
      host->table(host->self, content.data(), static_cast<std::int64_t>(content.size()));
      return;
    }
    case PlannerDeed::wants_too_much_scratch:
      host->scratch(host->self, 20LL << 30, 0);
      host->scratch(host->self, 20LL << 30, 1);
      return;
    case PlannerDeed::passes_bytes_that_are_no_text:
      host->note(host->self, "bytes",
                 "\xff\xfe\x01\x1b[2J\xc2\x9b"
                 "0m");
      return;
    case PlannerDeed::leaves_a_body_open:
      host->begin_if(host->self, host->condition(host->self, 0), 0, kNext);
      return;
    case PlannerDeed::is_not_supported:
      host->fail(host->self, KBEAM_NOT_SUPPORTED, "only for other shapes");
      return;
    case PlannerDeed::asks_for_an_unknown_tensor: {
      kbeam_buffer found{};
      host->find_buffer(host->self, "Y", KBEAM_OUTPUT, KBEAM_F32, &found);
      return;
    }
    case PlannerDeed::asks_for_an_unknown_axis:
      host->axis(host->self, "nn");
      return;
    case PlannerDeed::mistakes_role_and_type: {
      kbeam_buffer found{};
      host->find_buffer(host->self, "x", KBEAM_OUTPUT, KBEAM_F64, &found);
      return;
    }
    case PlannerDeed::asks_for_a_text:
      host->text(host->self, "family");
      return;
    case PlannerDeed::records_nothing:
      return;
    case PlannerDeed::count:
      return;
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void kbeam_candidate_plan(
    const kbeam_cuda_host* host) {
  const auto deed = static_cast<PlannerDeed>(host->axis(host->self, "deed"));
  do_deed(host, deed);
  if (deed != PlannerDeed::records_nothing && deed != PlannerDeed::leaves_a_body_open)
    fill_output(host, 16, 0);
}

#ifdef KBEAM_TEST_AT_LOAD
namespace {
struct AtLoad {
  AtLoad() { do_deed(nullptr, PlannerDeed::KBEAM_TEST_AT_LOAD); }
} at_load;
}  // namespace
#endif

#ifdef KBEAM_TEST_LACKS_A_SYMBOL
extern "C" int cudaMalloc(void**, unsigned long);
extern "C" __attribute__((visibility("default"))) int use() {
  return cudaMalloc(nullptr, 1);
}
#endif
