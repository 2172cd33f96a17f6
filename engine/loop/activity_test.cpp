#include "loop/activity.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(ActivityMeter, CountsTheUnionOfOverlappingSpans) {
  ManualClock clock;
  ActivityMeter meter(clock);
  clock.advance_ns(1 * kSecond);  // idle
  {
    const ActivityMeter::Span build(meter);
    clock.advance_ns(2 * kSecond);
    {
      const ActivityMeter::Span check(meter);
      clock.advance_ns(3 * kSecond);
    }
    clock.advance_ns(1 * kSecond);
  }
  clock.advance_ns(3 * kSecond);  // idle
  EXPECT_DOUBLE_EQ(meter.wall_s(), 10);
  EXPECT_DOUBLE_EQ(meter.busy_s(), 6);
  EXPECT_DOUBLE_EQ(meter.overhead_fraction(), 0.4);
}

TEST(ActivityMeter, CountsASpanThatIsStillOpen) {
  ManualClock clock;
  ActivityMeter meter(clock);
  const ActivityMeter::Span build(meter);
  clock.advance_ns(5 * kSecond);
  EXPECT_DOUBLE_EQ(meter.busy_s(), 5);
  EXPECT_DOUBLE_EQ(meter.overhead_fraction(), 0);
}

TEST(ActivityMeter, HasNoOverheadBeforeTimeHasPassed) {
  ManualClock clock;
  EXPECT_DOUBLE_EQ(ActivityMeter(clock).overhead_fraction(), 0);
}

}  // namespace
}  // namespace kbeam
