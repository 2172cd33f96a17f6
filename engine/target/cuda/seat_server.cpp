// The seat's own process: reads commands, drives the session, answers. Trusted; the candidate's
// device code is all that is foreign here.
#include <signal.h>
#include <sys/prctl.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "target/cuda/seat.h"
#include "target/cuda/seat_channel.h"
#include "target/cuda/seat_messages.h"
#include "target/cuda/seat_session.h"

namespace kbeam {
namespace {

class SeatServer {
 public:
  explicit SeatServer(int descriptor) : channel_(descriptor) {}

  int serve() {
    Json message;
    while (channel_.receive(message, -1) == SeatChannel::Received::message) {
      const std::string command = message.value("do", "");
      if (command == "end") {
        session_.reset();
        channel_.send({{"state", "done"}});
        return 0;
      }
      if (!answer(command, message)) return 0;
    }
    return 0;
  }

 private:
  // False when the process has to end: the context may be gone.
  bool answer(const std::string& command, const Json& message) {
    SeatFailure failure;
    try {
      Json done = carry_out(command, message);
      done["state"] = "done";
      return channel_.send(done);
    } catch (const SeatRefusal& refusal) {
      // A plan that is refused before anything ran leaves the context as it was.
      const bool before_running = command == "prepare" && refusal.verdict() != Verdict::crashed &&
                                  refusal.verdict() != Verdict::engine_failed;
      failure = {refusal.verdict(), refusal.sentence(), before_running};
    } catch (const DriverFailure& refusal) {
      failure = {Verdict::engine_failed, std::string(command) + ": " + refusal.what(), false};
    } catch (const std::exception& trouble) {
      failure = {Verdict::engine_failed, std::string(command) + ": " + trouble.what(), false};
    }
    Json json = to_json(failure);
    json["state"] = "failed";
    return channel_.send(json) && failure.alive;
  }

  Json carry_out(const std::string& command, const Json& message) {
    if (command == "start") return start(message);
    if (!session_) throw SeatRefusal(Verdict::engine_failed, "the first command must be start");
    if (command == "probe") return {{"sound", session_->probe()}};
    if (command == "prepare") {
      session_->prepare(message.at("case").get<std::string>());
      return Json::object();
    }
    if (command == "call") {
      const auto request = seat_call_request_from_json(message);
      if (!request.ok()) throw SeatRefusal(Verdict::engine_failed, request.error().text());
      return to_json(session_->call(*request, hooks()));
    }
    const int repeats = message.at("repeats").get<int>();
    session_->prepare(message.at("case").get<std::string>());
    if (command == "slope") return {{"slope_ns", session_->host_slope_ns(repeats, hooks())}};
    if (command == "nodes") return to_json(session_->node_times(repeats, hooks()));
    throw SeatRefusal(Verdict::engine_failed, "the seat knows no command '" + command + "'");
  }

  Json start(const Json& message) {
    const auto fail = [](const Error& error) {
      throw SeatRefusal(Verdict::engine_failed, error.text());
    };
    auto start = seat_start_from_json(message);
    if (!start.ok()) fail(start.error());
    auto driver = Driver::load();
    if (!driver.ok()) fail(driver.error());
    driver_ = std::move(driver).value();
    SessionSetup setup;
    setup.cases = std::move(start->cases);
    for (const auto& [hash, file] : start->images) {
      auto bytes = read_file(file);
      if (!bytes.ok()) fail(bytes.error());
      setup.images[hash] = std::move(bytes).value();
    }
    setup.grade = start->grade;
    setup.may_use_libraries = start->may_use_libraries;
    setup.memory = start->plain_memory ? MemoryMode::plain : MemoryMode::guarded;
    if (!start->problem_module.empty()) {
      auto problem = HostProblem::load(start->problem_module);
      if (!problem.ok()) fail(problem.error());
      problem_ = std::move(problem).value();
      setup.host_problem = problem_.get();
    }
    setup.trusted_image = seat_kernel_image();
    session_ = std::make_unique<SeatSession>(*driver_, std::move(setup));
    return to_json(session_->describe());
  }

  CallHooks hooks() {
    CallHooks hooks;
    hooks.running = [this] { say("running"); };
    hooks.secret = [this] {
      say("drained");
      Json answer;
      if (channel_.receive(answer, -1) != SeatChannel::Received::message)
        throw SeatRefusal(Verdict::engine_failed, "the conductor is gone");
      return answer.at("secret").get<std::uint64_t>();
    };
    return hooks;
  }

  void say(const char* state) {
    if (!channel_.send({{"state", state}}))
      throw SeatRefusal(Verdict::engine_failed, "the conductor is gone");
  }

  SeatChannel channel_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<HostProblem> problem_;
  std::unique_ptr<SeatSession> session_;
};

}  // namespace

int serve_seat(int descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a seat never outlives its conductor
  return SeatServer(descriptor).serve();
}

}  // namespace kbeam
