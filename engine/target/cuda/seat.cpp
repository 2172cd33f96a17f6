// The conductor's side of a seat: sends commands, waits with a deadline for each phase, and turns a
// seat that hangs or dies into a verdict.
#include "target/cuda/seat.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/defence.h"
#include "target/cuda/seat_messages.h"
#include "target/cuda/seat_process.h"

namespace kbeam {
namespace {

// Everything but candidate kernels: loading, generating, checking. A wrapper (a sanitizer) makes
// all of it slower.
constexpr double kTrustedTimeoutS = 300;
constexpr double kWrappedTimeoutS = 3600;
constexpr double kEndTimeoutS = 60;
constexpr std::size_t kQuotedOutput = 400;

using Received = SeatChannel::Received;

class ProcessSeat final : public Seat {
 public:
  ProcessSeat(std::unique_ptr<SeatProcess> process, const SeatOptions& options)
      : process_(std::move(process)),
        call_timeout_s_(options.call_timeout_s),
        trusted_timeout_s_(options.wrapper.empty() ? kTrustedTimeoutS : kWrappedTimeoutS) {}

  std::optional<SeatFailure> introduce(const SeatStart& start) {
    Json command = to_json(start);
    command["do"] = "start";
    Json done;
    if (auto failure = carry_out(command, {}, done)) return failure;
    return read(seat_device_from_json(done), device_);
  }

  const SeatDevice& device() const override { return device_; }

  std::optional<SeatFailure> prepare(const std::string& case_name) override {
    Json done;
    return carry_out({{"do", "prepare"}, {"case", case_name}}, {}, done);
  }

  std::optional<SeatFailure> call(const SeatCallRequest& request, SeatCall& result) override {
    Json command = to_json(request);
    command["do"] = "call";
    Json done;
    if (auto failure = carry_out(command, {request.secret, 1}, done)) return failure;
    return read(seat_call_from_json(done), result);
  }

  std::optional<SeatFailure> host_slope_ns(const std::string& case_name, int repeats,
                                           double& slope_ns) override {
    Json done;
    const Json command{{"do", "slope"}, {"case", case_name}, {"repeats", repeats}};
    if (auto failure = carry_out(command, {0, 3 * repeats + 1}, done)) return failure;
    slope_ns = done.value("slope_ns", 0.0);
    return std::nullopt;
  }

  std::optional<SeatFailure> node_times(const std::string& case_name, int repeats,
                                        SeatNodeTimes& times) override {
    Json done;
    const Json command{{"do", "nodes"}, {"case", case_name}, {"repeats", repeats}};
    if (auto failure = carry_out(command, {0, 2 * repeats + 1}, done)) return failure;
    return read(seat_node_times_from_json(done), times);
  }

  bool probe() override {
    Json done;
    return !carry_out({{"do", "probe"}}, {}, done) && done.value("sound", false);
  }

  SeatEnding end() override {
    if (!dead_) {
      process_->channel().send({{"do", "end"}});
      dead_ = true;
    }
    return process_->finish(kEndTimeoutS);
  }

 private:
  struct Running {
    std::uint64_t secret = 0;  // what a seat is told once it has drained
    int calls = 1;             // that the candidate may take the time of
  };

  template <typename T>
  std::optional<SeatFailure> read(Result<T> result, T& target) {
    if (!result.ok()) return lost(Verdict::engine_failed, result.error().text());
    target = std::move(result).value();
    return std::nullopt;
  }

  std::optional<SeatFailure> carry_out(const Json& command, const Running& running, Json& done) {
    if (dead_) return SeatFailure{Verdict::engine_failed, "the seat has ended", false};
    if (!process_->channel().send(command)) return died(false);
    bool candidate_runs = false;
    for (;;) {
      Json message;
      const bool has_limit = candidate_runs && defence_is_on(Defence::call_timeout);
      const double patience = has_limit ? call_timeout_s_ * running.calls : trusted_timeout_s_;
      const Received received = process_->channel().receive(message, patience);
      if (received == Received::timed_out) return hung(candidate_runs, patience);
      if (received == Received::closed) return died(candidate_runs);
      const std::string state = message.value("state", "");
      if (state == "running") {
        candidate_runs = true;
      } else if (state == "drained") {
        candidate_runs = false;
        if (!process_->channel().send({{"secret", running.secret}})) return died(false);
      } else if (state == "done") {
        done = std::move(message);
        return std::nullopt;
      } else {
        return failed(message);
      }
    }
  }

  SeatFailure failed(const Json& message) {
    auto failure = seat_failure_from_json(message);
    if (!failure.ok()) return lost(Verdict::engine_failed, failure.error().text());
    if (!failure->alive) return lost(failure->verdict, failure->sentence);
    return *failure;
  }

  SeatFailure hung(bool candidate_runs, double patience) {
    if (candidate_runs)
      return lost(Verdict::timed_out,
                  fmt::format("the call did not end within {:.3g} s", patience));
    return lost(Verdict::engine_failed,
                fmt::format("the seat did not answer within {:.3g} s", patience));
  }

  SeatFailure died(bool candidate_runs) {
    return lost(candidate_runs ? Verdict::crashed : Verdict::engine_failed,
                candidate_runs ? "the process of the GPU died during the call"
                               : "the process of the GPU died");
  }

  SeatFailure lost(Verdict verdict, std::string sentence) {
    dead_ = true;
    if (!process_->kill())
      sentence += "; its process cannot be killed: the driver hangs";
    else if (const std::string printed = process_->output(); !printed.empty())
      sentence +=
          "; it printed: " +
          printed.substr(printed.size() > kQuotedOutput ? printed.size() - kQuotedOutput : 0);
    return {verdict, std::move(sentence), false};
  }

  std::unique_ptr<SeatProcess> process_;
  double call_timeout_s_;
  double trusted_timeout_s_;
  SeatDevice device_;
  bool dead_ = false;
};

}  // namespace

Result<std::unique_ptr<Seat>> Seat::start(const SeatOptions& options,
                                          std::optional<SeatFailure>& failure) {
  std::vector<std::string> command = options.wrapper;
  command.push_back(options.worker.string());
  command.emplace_back(kSeatArgument);
  command.emplace_back("3");
  ASSIGN_OR_RETURN(auto process, SeatProcess::start(command, seat_environment(options.device)));
  auto seat = std::make_unique<ProcessSeat>(std::move(process), options);
  failure = seat->introduce(start_of(options));
  return std::unique_ptr<Seat>(std::move(seat));
}

}  // namespace kbeam
