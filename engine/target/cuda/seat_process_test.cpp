// A shell stands in for the seat's process: it hangs, dies, or answers with bytes made here.
#include "target/cuda/seat_process.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/json_forms.h"
#include "target/cuda/seat_messages.h"
#include "target/cuda/self_test_plans.h"

namespace kbeam {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string framed(const Json& message) {
  const std::string text = json_text(message);
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

class SeatProcessTest : public testing::Test {
 protected:
  SeatProcessTest() {
    folder_ = *make_temporary_folder(testing::TempDir(), "seat-");
    plan_ = self_test::subject_plan("wrong_value");
  }
  ~SeatProcessTest() override { std::filesystem::remove_all(folder_); }

  // A worker that sends these messages and then does `ending`. The script's $2 is the descriptor.
  std::filesystem::path worker(const std::vector<Json>& messages, const std::string& ending) {
    std::string bytes;
    for (const Json& message : messages) bytes += framed(message);
    EXPECT_TRUE(write_file(folder_ / "messages", bytes).ok());
    const std::filesystem::path script = folder_ / "worker";
    EXPECT_TRUE(write_file(script, "#!/bin/sh\ncat '" + (folder_ / "messages").string() +
                                       "' >&3\n" + ending + "\n")
                    .ok());
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return script;
  }

  // The default is never met, not even on a machine that is busy.
  std::unique_ptr<Seat> start(const std::filesystem::path& script, double call_timeout_s = 60) {
    SeatOptions options;
    options.worker = script;
    options.call_timeout_s = call_timeout_s;
    SeatCase& each = options.cases.emplace_back();
    each.the_case.name = "small";
    each.tensors = self_test::tensors();
    each.subject = &plan_;
    auto seat = Seat::start(options, failure_);
    EXPECT_TRUE(seat.ok());
    return std::move(seat).value();
  }

  static Json ready() {
    Json json = to_json(SeatDevice{"A GPU", "GPU-1", "580", 132, 90, {}});
    json["state"] = "done";
    return json;
  }

  std::filesystem::path folder_;
  LaunchPlan plan_;
  std::optional<SeatFailure> failure_;
};

// A worker that ends before it is asked is another story.
const std::string kWaitForACommand = "dd bs=1 count=1 <&3 >/dev/null 2>&1";

TEST_F(SeatProcessTest, IntroducesItsDevice) {
  const auto seat = start(worker({ready()}, "exec sleep 1000"));
  ASSERT_FALSE(failure_) << failure_->sentence;
  EXPECT_EQ(seat->device().name, "A GPU");
}

TEST_F(SeatProcessTest, ACallThatHangsTimesOutAndIsKilled) {
  const auto seat =
      start(worker({ready(), {{"state", "running"}}}, "exec sleep 1000"), /*call_timeout_s=*/0.2);
  ASSERT_FALSE(failure_);
  SeatCall result;
  const auto failure = seat->call({"small", 1, 2, SeatDepth::full, true}, result);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::timed_out);
  EXPECT_FALSE(failure->alive);
  EXPECT_THAT(failure->sentence, HasSubstr("within 0.2 s"));
  EXPECT_EQ(seat->end().exit_code, -1);
  EXPECT_FALSE(seat->probe());
}

TEST_F(SeatProcessTest, ADeathDuringTheCallIsTheCandidates) {
  const auto seat = start(worker({ready(), {{"state", "running"}}},
                                 kWaitForACommand + "; echo last words; exec 3>&-; exit 7"));
  SeatCall result;
  const auto failure = seat->call({"small", 1, 2, SeatDepth::full, true}, result);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::crashed);
  EXPECT_THAT(failure->sentence, HasSubstr("last words"));
}

TEST_F(SeatProcessTest, ADeathBeforeOrAfterTheRunIsOurs) {
  auto seat = start(worker({ready()}, kWaitForACommand + "; exit 7"));
  SeatCall result;
  auto failure = seat->call({"small", 1, 2, SeatDepth::full, true}, result);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::engine_failed);
  seat = start(worker({ready(), {{"state", "running"}}, {{"state", "drained"}}},
                      kWaitForACommand + "; exit 7"));
  failure = seat->call({"small", 1, 2, SeatDepth::full, true}, result);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::engine_failed);
}

TEST_F(SeatProcessTest, ARefusedPlanLeavesTheSeatAlive) {
  Json refused = to_json(SeatFailure{Verdict::bad_plan, "no such kernel", true});
  refused["state"] = "failed";
  const auto seat = start(worker({ready(), refused, {{"state", "done"}}}, "exec sleep 1000"));
  const auto failure = seat->prepare("small");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->verdict, Verdict::bad_plan);
  EXPECT_TRUE(failure->alive);
  EXPECT_FALSE(seat->prepare("other"));
}

TEST_F(SeatProcessTest, AWorkerThatIsNoneIsAFailureWithTheReason) {
  start(worker({}, "echo no driver here; exit 1"));
  ASSERT_TRUE(failure_);
  EXPECT_EQ(failure_->verdict, Verdict::engine_failed);
  EXPECT_THAT(failure_->sentence, HasSubstr("no driver here"));
}

TEST_F(SeatProcessTest, AGoodEndReportsTheExitCode) {
  // Reads until the conductor says "end"; a wrapper's exit code looks like this.
  const auto seat = start(worker({ready()}, "head -c 1 <&3 >/dev/null; echo report; exit 99"));
  const SeatEnding ending = seat->end();
  EXPECT_EQ(ending.exit_code, 99);
  EXPECT_THAT(ending.output, HasSubstr("report"));
}

TEST(SeatEnvironmentTest, ShowsOneDeviceOfThoseThatAreVisible) {
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(seat_environment(2), Contains("CUDA_VISIBLE_DEVICES=2"));
  ::setenv("CUDA_VISIBLE_DEVICES", "5,GPU-abc,7", 1);
  EXPECT_THAT(seat_environment(0), Contains("CUDA_VISIBLE_DEVICES=5"));
  EXPECT_THAT(seat_environment(1), Contains("CUDA_VISIBLE_DEVICES=GPU-abc"));
  EXPECT_THAT(seat_environment(9), Contains("CUDA_VISIBLE_DEVICES="));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::setenv("KBEAM_SECRET", "1", 1);
  for (const std::string& variable : seat_environment(0))
    EXPECT_EQ(variable.find("KBEAM_SECRET"), std::string::npos);
}

}  // namespace
}  // namespace kbeam
