// What the judge's own work costs on this machine: starting, an empty call, poison, flush, looking
// for damage. Run by hand; prints medians.
#include <fmt/format.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include "target/cpu/runner_fixture.h"
#include "target/cpu/runner_levels.h"

namespace kbeam {
namespace {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Time on the processor rather than on the wall: what other programs take meanwhile is not counted.
double median_busy_us(int times, const std::function<void()>& work) {
  const auto busy_us = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
  };
  std::vector<double> values;
  for (int time = 0; time < times; ++time) {
    const double begin_us = busy_us();
    work();
    values.push_back(busy_us() - begin_us);
  }
  return median(values);
}

double median_us(int times, const std::function<void()>& work) {
  std::vector<double> values;
  for (int time = 0; time < times; ++time) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    values.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  return median(values);
}

void report_start(SandboxLevel level) {
  const RunnerOptions options = testing::options_for("deeds");
  std::vector<double> end_us;
  const double start_us = median_us(41, [&] {
    auto started = start_runner_at(options, level);
    end_us.push_back(median_us(1, [&] { started = Error{}; }));
  });
  fmt::print("start at level {}: {:.0f} us, of it the end {:.0f} us\n", to_string(level), start_us,
             median(end_us));
}

void report_empty_call(int workers, std::vector<int> cpus) {
  RunnerOptions options = testing::options_for("deeds", workers);
  options.cpus = cpus;
  const auto runner = testing::start_runner(options);
  std::vector<double> values;
  for (int call = 0; call < 2001; ++call)
    values.push_back(static_cast<double>(runner->empty_call().value->wall_ns) * 1e-3);
  std::sort(values.begin(), values.end());
  fmt::print(
      "empty call, {} worker(s) on {} processor(s): median {:.1f} us, 5 % {:.1f}, 95 % {:.1f}\n",
      workers, cpus.size(), values[1000], values[100], values[1900]);
}

void report_memory(std::int64_t length) {
  RunnerOptions options = testing::options_for("deeds");
  options.input_bytes = options.output_bytes = length * 8;
  const auto runner = testing::start_runner(options);
  const double layout_us = median_us(5, [&] { (void)runner->lay_out(testing::shapes(length), 1); });
  const double output_mb = static_cast<double>(length) * 8e-6;
  const double all_mb = static_cast<double>(length) * 12e-6;
  std::uint64_t key = 0;
  const double poison_us = median_busy_us(15, [&] { runner->poison(0, ++key); });
  const double warm_flush_us = median_busy_us(15, [&] {
    const float* a = runner->slot(0).inputs[0].f32();
    volatile float sum = 0;
    for (std::int64_t i = 0; i < length; i += 16) sum = sum + a[i];
  });
  const double flush_us = median_busy_us(15, [&] {
    const float* a = runner->slot(0).inputs[0].f32();
    volatile float sum = 0;
    for (std::int64_t i = 0; i < length; i += 16) sum = sum + a[i];
    runner->flush(0);
  });
  const double search_us = median_busy_us(15, [&] { (void)runner->find_unwritten(0); });
  const Slot& slot = runner->slot(0);
  for (const TensorView& view : slot.outputs)
    std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
  const double full_search_us = median_busy_us(15, [&] { (void)runner->find_unwritten(0); });
  const double inspect_us = median_busy_us(15, [&] { (void)runner->inspect(0); });
  fmt::print(
      "{:.1f} MB outputs, {:.1f} MB all: lay_out {:.0f} us; poison {:.1f} us/MB; flush {:.1f} "
      "us/MB; "
      "find_unwritten {:.1f} us/MB (first hit {:.0f} us); inspect {:.1f} us\n",
      output_mb, all_mb, layout_us, poison_us / output_mb, (flush_us - warm_flush_us) / all_mb,
      full_search_us / output_mb, search_us, inspect_us);
}

}  // namespace
}  // namespace kbeam

int main() {
  using kbeam::SandboxLevel;
  for (const SandboxLevel level : {SandboxLevel::none, SandboxLevel::rlimits,
                                   SandboxLevel::landlock_seccomp, SandboxLevel::namespaces})
    if (level <= kbeam::best_sandbox()) kbeam::report_start(level);
  // The judge on one processor, the candidate on the other, as measurements are made.
  cpu_set_t judge;
  CPU_ZERO(&judge);
  CPU_SET(0, &judge);
  sched_setaffinity(0, sizeof judge, &judge);
  kbeam::report_empty_call(1, {1});
  kbeam::report_empty_call(2, {0, 1});
  kbeam::report_memory(1'000'000);
  kbeam::report_memory(8'000'000);
}
