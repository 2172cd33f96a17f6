#include "propose/pacing.h"

#include <gtest/gtest.h>

#include <set>

namespace kbeam {
namespace {

TEST(BackOff, WaitsGrowWithJitterAndEnd) {
  const BackOffRule rule{.first_s = 1, .factor = 2, .most_s = 5, .most_attempts = 5};
  std::set<double> seconds;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    BackOff back_off(rule, seed);
    for (const double full : {1.0, 2.0, 4.0, 5.0}) {
      const auto wait = back_off.next_wait_s({});
      ASSERT_TRUE(wait);
      EXPECT_GE(*wait, full / 2);
      EXPECT_LE(*wait, full);
      if (full == 2) seconds.insert(*wait);
    }
    EXPECT_FALSE(back_off.next_wait_s({})) << "five attempts";
    EXPECT_EQ(back_off.attempts(), 5);
  }
  EXPECT_GT(seconds.size(), 15u) << "clients must not come back together";
}

TEST(BackOff, WhatTheEndpointAsksForIsALowerBound) {
  BackOff back_off({.first_s = 1, .longest_asked_s = 100}, 1);
  EXPECT_EQ(back_off.next_wait_s(30), 30);
  EXPECT_GE(*back_off.next_wait_s(0), 1);
  EXPECT_FALSE(back_off.next_wait_s(101)) << "too long to wait for";
}

TEST(RetryAfter, SecondsOrADate) {
  EXPECT_EQ(parse_retry_after("7", 0), 7);
  EXPECT_EQ(parse_retry_after(" 0.5 \r\n", 0), 0.5);
  // 784111777 is the date of the RFC's own example.
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111770), 7);
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111999), 0);
  EXPECT_FALSE(parse_retry_after("-3", 0));
  EXPECT_FALSE(parse_retry_after("soon", 0));
  EXPECT_FALSE(parse_retry_after("", 0));
}

TEST(RateLimit, SoManyInAnyMinute) {
  RateLimit limit(2);
  EXPECT_EQ(limit.take(100), 0);
  EXPECT_EQ(limit.take(110), 0);
  EXPECT_EQ(limit.take(115), 45);
  EXPECT_EQ(limit.take(160), 0);
  EXPECT_EQ(limit.take(161), 9);
  limit.hold_until(200);
  EXPECT_EQ(limit.take(180), 20);
  EXPECT_EQ(limit.take(200), 0);

  RateLimit none(0);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(none.take(1), 0);
}

}  // namespace
}  // namespace kbeam
