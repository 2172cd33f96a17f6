#include "target/cuda/seat_messages.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "target/cuda/seat_channel.h"
#include "target/cuda/self_test_plans.h"

namespace kbeam {
namespace {

using Received = SeatChannel::Received;

TEST(SeatMessagesTest, AStartTravelsWithItsPlansAndEqualPlansTravelOnce) {
  const LaunchPlan tour = self_test::subject_plan("tour");
  const LaunchPlan generate = self_test::generate_plan();
  SeatOptions options;
  options.grade = "fp32";
  options.may_use_libraries = true;
  options.images["hash"] = "/somewhere/image.fatbin";
  for (const char* name : {"small", "large"}) {
    SeatCase& each = options.cases.emplace_back();
    each.the_case.name = name;
    each.the_case.axes = {{"n", 256}};
    each.the_case.family = "dense";
    each.tensors = self_test::tensors();
    each.subject = &tour;
    each.generate = &generate;
  }
  const Json json = to_json(start_of(options));
  EXPECT_EQ(json.at("plans").size(), 2u);
  const auto start = seat_start_from_json(json);
  ASSERT_TRUE(start.ok()) << start.error().text();
  ASSERT_EQ(start->cases.size(), 2u);
  const SessionCase& large = start->cases[1];
  EXPECT_EQ(large.the_case.name, "large");
  EXPECT_EQ(large.the_case.axes.at("n"), 256);
  EXPECT_EQ(large.tensors[2].type, KBEAM_I32);
  EXPECT_EQ(launch_plan_hash(large.subject), launch_plan_hash(tour));
  EXPECT_EQ(launch_plan_hash(*large.generate), launch_plan_hash(generate));
  EXPECT_FALSE(large.full_check.has_value());
  EXPECT_TRUE(start->may_use_libraries);
  EXPECT_EQ(start->images.at("hash"), "/somewhere/image.fatbin");
}

TEST(SeatMessagesTest, ARequestTravelsWithoutItsSecret) {
  const SeatCallRequest request{"small", std::numeric_limits<std::uint64_t>::max(), 4711,
                                SeatDepth::quick, false};
  const Json json = to_json(request);
  EXPECT_EQ(json.dump().find("4711"), std::string::npos);
  const auto read = seat_call_request_from_json(json);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->seed, request.seed);
  EXPECT_EQ(read->depth, SeatDepth::quick);
  EXPECT_FALSE(read->cold);
  EXPECT_EQ(read->secret, 0u);
}

TEST(SeatMessagesTest, ACallAndAFailureComeBackAsTheyWere) {
  SeatCall call{1234.5, 2345.5, {}, "abc", "as usual"};
  call.report.verdict = Verdict::not_finite;
  call.report.figures.push_back({"residual", std::nan(""), 10, "eps", "matrix 3"});
  const auto read = seat_call_from_json(to_json(call));
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->event_ns, 1234.5);
  EXPECT_EQ(read->note, "as usual");
  EXPECT_TRUE(std::isnan(read->report.figures.at(0).value));
  const auto failure =
      seat_failure_from_json(to_json(SeatFailure{Verdict::bad_plan, "no kernel", true}));
  ASSERT_TRUE(failure.ok());
  EXPECT_EQ(failure->verdict, Verdict::bad_plan);
  EXPECT_TRUE(failure->alive);
}

class SeatChannelTest : public testing::Test {
 protected:
  SeatChannelTest() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~SeatChannelTest() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int ends_[2] = {-1, -1};
};

TEST_F(SeatChannelTest, CarriesMessagesInOrder) {
  const SeatChannel a(ends_[0]);
  const SeatChannel b(ends_[1]);
  ASSERT_TRUE(a.send({{"do", "end"}}));
  ASSERT_TRUE(a.send({{"secret", 18446744073709551615u}}));
  Json message;
  ASSERT_EQ(b.receive(message, 10), Received::message);
  EXPECT_EQ(message.at("do"), "end");
  ASSERT_EQ(b.receive(message, -1), Received::message);
  EXPECT_EQ(message.at("secret").get<std::uint64_t>(), 18446744073709551615u);
}

TEST_F(SeatChannelTest, TellsSilenceFromTheEnd) {
  const SeatChannel b(ends_[1]);
  Json message;
  EXPECT_EQ(b.receive(message, 0), Received::timed_out);
  ::shutdown(ends_[0], SHUT_RDWR);
  EXPECT_EQ(b.receive(message, 10), Received::closed);
  EXPECT_FALSE(SeatChannel(ends_[0]).send({{"do", "end"}}));
}

TEST_F(SeatChannelTest, AnAbsurdLengthIsTheEnd) {
  const std::uint64_t length = ~0ull;
  ASSERT_EQ(::write(ends_[0], &length, sizeof(length)), 8);
  Json message;
  EXPECT_EQ(SeatChannel(ends_[1]).receive(message, 10), Received::closed);
}

}  // namespace
}  // namespace kbeam
