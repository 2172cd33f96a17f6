#include "target/cuda/self_test.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/entropy.h"
#include "base/files.h"
#include "target/cuda/kernels/self_test_layout.h"
#include "target/cuda/nvml.h"
#include "target/cuda/seat.h"
#include "target/cuda/seat_kernels.h"
#include "target/cuda/self_test_plans.h"

namespace kbeam {
namespace {

using self_test::Relation;

constexpr int kCallsOfTour = 5;
constexpr int kTimedCalls = 9;
constexpr int kSlopeRepeats = 200;
constexpr double kHangTimeoutS = 2;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A test says what it saw; it fails by a false `passed`.
struct Outcome {
  bool passed = false;
  std::string saw;
};

// One subject on the made-up problem, in a seat of its own.
class Subject {
 public:
  struct Spec {
    std::string name;
    Relation relation = Relation::affine;
    bool plain = false;
    double timeout_s = 10;
  };

  Subject(const SelfTestOptions& options, const std::filesystem::path& image, const Spec& spec)
      : plan_(self_test::subject_plan(spec.name)),
        generate_(self_test::generate_plan()),
        check_(self_test::check_plan(spec.relation)) {
    SeatOptions seat;
    seat.worker = options.worker;
    seat.device = options.device;
    seat.images[self_test::kImageHash] = image;
    seat.grade = "self test";
    seat.call_timeout_s = spec.timeout_s;
    seat.plain_memory = spec.plain;
    seat.may_use_libraries = plan_.uses_library();
    Case the_case;
    the_case.name = spec.name;
    seat.cases.push_back({the_case, self_test::tensors(), &plan_, &generate_, nullptr, &check_});
    name_ = spec.name;
    auto started = Seat::start(seat, failure_);
    if (started.ok())
      seat_ = std::move(started).value();
    else
      failure_ = SeatFailure{Verdict::engine_failed, started.error().text(), false};
  }

  const std::optional<SeatFailure>& failure() const { return failure_; }
  Seat* seat() { return failure_ ? nullptr : seat_.get(); }
  const SeatDevice* device() const { return failure_ ? nullptr : &seat_->device(); }

  // The verdict of one call, whichever way it came about.
  SeatCall call(std::uint64_t seed, bool cold = true) {
    SeatCall result;
    if (!failure_)
      failure_ = seat_->call({name_, seed, random_bits(), SeatDepth::full, cold}, result);
    if (failure_) {
      result.report.verdict = failure_->verdict;
      result.report.sentence = failure_->sentence;
    }
    return result;
  }

 private:
  LaunchPlan plan_, generate_, check_;
  std::string name_;
  std::optional<SeatFailure> failure_;
  std::unique_ptr<Seat> seat_;
};

std::string told(const SeatCall& call) {
  std::string text{to_string(call.report.verdict)};
  if (!call.report.sentence.empty()) text += ": " + call.report.sentence;
  return text.substr(0, 150);
}

class Tour {
 public:
  Tour(const SelfTestOptions& options, std::filesystem::path image)
      : options_(options), image_(std::move(image)) {}

  int run() {
    test("features", [&] { return features(); });
    test("gemm node", [&] { return library("gemm", Relation::product); });
    test("cusolver.sgeqrf", [&] { return library("cusolver.sgeqrf", Relation::factor); });
    test("cublas.sgeqrf_batched",
         [&] { return library("cublas.sgeqrf_batched", Relation::factor); });
    test("a wrong value",
         [&] { return verdict("wrong_value", Verdict::wrong_value, "element 777"); });
    test("unwritten output",
         [&] { return verdict("unwritten", Verdict::wrong_value, "never written"); });
    test("write outside",
         [&] { return verdict("outside", Verdict::wrote_outside, "beyond the end of Y"); });
    test("changed input", [&] { return verdict("mutates", Verdict::mutated_input, "A[5]"); });
    test("illegal address",
         [&] { return verdict("far_outside", Verdict::crashed, "ILLEGAL_ADDRESS"); });
    test("hang", [&] { return verdict("hangs", Verdict::timed_out, ""); });
    test("parameter size",
         [&] { return verdict("bad_parameter", Verdict::bad_plan, "parameter 1"); });
    test("events wait for an early launch", [&] { return ends_early(); });
    test("cold cache", [&] { return cold_cache(); });
    test("host slope against events", [&] { return slope(); });
    test("node times", [&] { return node_times(); });
    test("plain memory", [&] { return plain_memory(); });
    test("clocks", [&] { return clocks(); });
    fmt::print(options_.out, "{} of {} passed\n", tests_ - failed_, tests_);
    return failed_;
  }

 private:
  void test(const char* what, const std::function<Outcome()>& body) {
    const Outcome outcome = body();
    ++tests_;
    if (!outcome.passed) ++failed_;
    fmt::print(options_.out, "{:6} {:32} {}\n", outcome.passed ? "ok" : "FAILED", what,
               outcome.saw);
    std::fflush(options_.out);
  }

  Subject start(const Subject::Spec& spec) const { return Subject(options_, image_, spec); }

  // Every kind of node, several times on new inputs: device variables begin anew in each call.
  Outcome features() {
    Subject subject = start({"tour", Relation::tour});
    if (const SeatDevice* device = subject.device()) {
      uuid_ = device->uuid;
      fmt::print(options_.out, "{}, {} multiprocessors, architecture {}, driver {}, {}\n",
                 device->name, device->multiprocessors, device->architecture, device->driver,
                 device->uuid);
      for (const std::string& weakness : device->weaknesses)
        fmt::print(options_.out, "weakness: {}\n", weakness);
    }
    double event_ns = 0;
    for (int i = 0; i < kCallsOfTour; ++i) {
      const SeatCall call = subject.call(random_bits());
      if (call.report.verdict != Verdict::accepted) return {false, told(call)};
      if (!(call.event_ns > 0) || !(call.host_ns >= call.event_ns))
        return {false,
                fmt::format("events {:.0f} ns, host {:.0f} ns", call.event_ns, call.host_ns)};
      event_ns = call.event_ns;
    }
    if (!subject.seat()->probe()) return {false, "the probe computed a wrong sum"};
    return {true, fmt::format("{} calls accepted, {:.1f} us each, probe right", kCallsOfTour,
                              event_ns / 1000)};
  }

  Outcome library(const std::string& name, Relation relation) {
    Subject subject = start({name, relation});
    const SeatCall call = subject.call(random_bits());
    return {call.report.verdict == Verdict::accepted,
            told(call) + fmt::format(", {:.1f} us {}", call.event_ns / 1000, call.note)};
  }

  Outcome verdict(const std::string& name, Verdict expected, const std::string& part) {
    Subject subject = start({name, Relation::affine, false, name == "hangs" ? kHangTimeoutS : 10});
    const SeatCall call = subject.call(random_bits());
    return {call.report.verdict == expected && call.report.sentence.find(part) != std::string::npos,
            told(call)};
  }

  // A last kernel that overlaps the one before and does not wait for it must not stop the clock.
  Outcome ends_early() {
    Subject subject = start({"ends_early"});
    const SeatCall call = subject.call(random_bits());
    return {
        call.report.verdict == Verdict::accepted && call.event_ns >= 0.9 * self_test::kEarlyEndNs,
        told(call) + fmt::format(", events {:.0f} us, host {:.0f} us, the early kernel runs {} us",
                                 call.event_ns / 1000, call.host_ns / 1000,
                                 self_test::kEarlyEndNs / 1000)};
  }

  double timed_ns(const std::string& name, bool cold) {
    Subject subject = start({name});
    std::vector<double> times;
    for (int i = 0; i < kTimedCalls; ++i)
      times.push_back(subject.call(random_bits(), cold).event_ns);
    return median(std::move(times));
  }

  // What was poisoned just before a call lies in the cache unless it is flushed; asking the cache
  // to keep it does not help.
  Outcome cold_cache() {
    const double warm = timed_ns("reads", false);
    const double cold = timed_ns("reads", true);
    const double pinned = timed_ns("pins", true);
    return {
        warm > 0 && cold > 1.1 * warm && pinned > 0.9 * cold,
        fmt::format("reading {} MB: warm {:.1f} us, cold {:.1f} us, cold with evict-last {:.1f} us",
                    self_test::kStreamBytes >> 20, warm / 1000, cold / 1000, pinned / 1000)};
  }

  Outcome slope() {
    Subject subject = start({"reads"});
    std::vector<double> times;
    for (int i = 0; i < kTimedCalls; ++i)
      times.push_back(subject.call(random_bits(), false).event_ns);
    const double event_ns = median(std::move(times));
    double slope_ns = 0;
    if (!subject.seat()) return {false, subject.failure()->sentence};
    if (auto failure = subject.seat()->host_slope_ns("reads", kSlopeRepeats, slope_ns))
      return {false, failure->sentence};
    const double ratio = slope_ns / event_ns;
    return {ratio > 0.5 && ratio < 1.5, fmt::format("warm: events {:.2f} us, slope {:.2f} us",
                                                    event_ns / 1000, slope_ns / 1000)};
  }

  Outcome node_times() {
    Subject subject = start({"tour", Relation::tour});
    SeatNodeTimes times;
    if (!subject.seat()) return {false, subject.failure()->sentence};
    if (auto failure = subject.seat()->node_times("tour", kTimedCalls, times))
      return {false, failure->sentence};
    double sum = 0;
    for (const double ns : times.node_ns) sum += std::max(0.0, ns - times.gap_ns);
    const SeatCall after = subject.call(random_bits());
    return {
        !times.nodes.empty() && times.nodes.size() == times.node_ns.size() && sum > 0 &&
            after.report.verdict == Verdict::accepted,
        fmt::format("{} nodes, {:.1f} us together, {:.1f} us as replayed, {:.2f} us an empty gap",
                    times.nodes.size(), sum / 1000, times.replay_ns / 1000, times.gap_ns / 1000)};
  }

  Outcome plain_memory() {
    Subject subject = start({"tour", Relation::tour, true});
    const SeatCall first = subject.call(7);
    const SeatCall again = subject.call(7);
    const SeatCall other = subject.call(8);
    if (first.report.verdict != Verdict::accepted) return {false, told(first)};
    return {!first.output_hash.empty() && first.output_hash == again.output_hash &&
                first.output_hash != other.output_hash,
            "outputs " + first.output_hash.substr(0, 12) + ", another seed " +
                other.output_hash.substr(0, 12)};
  }

  Outcome clocks() {
    auto monitor = GpuMonitor::open(uuid_);
    if (!monitor.ok()) return {false, monitor.error().text()};
    const GpuReading reading = (*monitor)->read();
    return {reading.sm_clock_mhz > 0,
            fmt::format(
                "SM {} MHz, memory {} MHz, {} C, {:.0f} W, throttle: {}, {} compute processes",
                reading.sm_clock_mhz, reading.memory_clock_mhz, reading.temperature_c,
                reading.power_w, reading.throttle_reasons, (*monitor)->compute_processes().size())};
  }

  const SelfTestOptions& options_;
  std::filesystem::path image_;
  std::string uuid_;
  int tests_ = 0;
  int failed_ = 0;
};

}  // namespace

int run_self_test(const SelfTestOptions& options) {
  namespace fs = std::filesystem;
  auto folder = make_temporary_folder(fs::temp_directory_path(), "kbeam-self-test-");
  if (!folder.ok()) {
    fmt::print(options.out, "{}\n", folder.error().text());
    return 1;
  }
  const fs::path image = *folder / "self_test.fatbin";
  if (auto written = write_file(image, self_test_image()); !written.ok()) {
    fmt::print(options.out, "{}\n", written.error().text());
    return 1;
  }
  const int failed = Tour(options, image).run();
  std::error_code ignored;
  fs::remove_all(*folder, ignored);
  return failed;
}

}  // namespace kbeam
