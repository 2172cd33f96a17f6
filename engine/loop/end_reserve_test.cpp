// When a search has to stop for what comes after it, from figures alone.
#include "loop/end_reserve.h"

#include <gtest/gtest.h>

#include "loop/promotion_reserve.h"

namespace kbeam {
namespace {

// Only who leads and who challenges matters here.
class Standings final : public Search {
 public:
  std::vector<Champion> leaders;
  std::vector<Challenge> waiting;

  std::optional<Proposal> ask() override { return std::nullopt; }
  void tell(const Observation&) override {}
  void add(Sketch) override {}
  void absorb(const Candidate&, const Observation&) override {}
  std::vector<Challenge> challenges() override { return waiting; }
  std::vector<Challenge> waiting_challenges() const override { return waiting; }
  void set_delta(const std::string&, double) override {}
  void crown(const Champion&) override {}
  void refuse(const std::string&, const std::string&, const std::string&) override {}
  bool drop(const std::string&, const std::string&) override { return false; }
  bool protect(const std::string&, const std::string&) override { return false; }
  std::vector<Notice> notices() override { return {}; }
  std::vector<FamilyState> families() const override { return {}; }
  std::vector<Champion> champions() const override { return leaders; }
  std::optional<Candidate> find(const std::string&) const override { return std::nullopt; }
};

// A control of 40 s with 20 calls of two cases of 0.5 s each: 1 s of every case's call is around
// it.
class EndReserveTest : public ::testing::Test {
 protected:
  EndReserveTest() {
    baseline_.case_ns = {{"small", 0.5e9}, {"large", 0.5e9}};
    baseline_.control_s = 40;
    baseline_.control_calls = 20;
    search_.leaders = {{.case_name = "small", .candidate_id = "a", .speedup = 2},
                       {.case_name = "large", .candidate_id = "a", .speedup = 2}};
  }
  EndReserve reserve(const Budget& budget) const {
    return {{.budget = budget, .promote = rule_, .on_cpu = false}, baseline_, search_};
  }
  StoppingRule rule_{.pairs_per_process = 9, .processes = 1};
  BaselineFacts baseline_;
  Standings search_;
};

TEST_F(EndReserveTest, TheSearchStopsWhenThePromotionAndTheReportJustFit) {
  const EndReserve kept = reserve({.wall_s = 100});
  const double promotion_s = kept.promotion_s();
  // Two cases, ten calls of 0.5 s and of 0.25 s, a quarter more.
  EXPECT_DOUBLE_EQ(promotion_s, 1.25 * 2 * 10 * (0.5 + 0.25) + kReportSeconds);
  EXPECT_EQ(kept.spent({.wall_s = 100 - promotion_s - 0.1}), std::nullopt);
  EXPECT_EQ(kept.spent({.wall_s = 100 - promotion_s}), StopReason::budget_wall);
}

TEST_F(EndReserveTest, NoLimitIsNeverSpentAndEachLimitIsItsOwn) {
  EXPECT_EQ(reserve({}).spent({.wall_s = 1e9, .device_s = 1e9}), std::nullopt);
  EXPECT_EQ(reserve({.wall_s = 1e6, .device_s = 50}).spent({.wall_s = 40, .device_s = 40}),
            StopReason::budget_device);
}

TEST_F(EndReserveTest, TheReportTakesNothingOfTheDevice) {
  const EndReserve kept = reserve({.device_s = 100});
  const double on_device_s = kept.promotion_s() - kReportSeconds;
  EXPECT_EQ(kept.spent({.device_s = 100 - on_device_s - 0.1}), std::nullopt);
  EXPECT_EQ(kept.spent({.device_s = 100 - on_device_s}), StopReason::budget_device);
}

TEST_F(EndReserveTest, WhoWaitsIsConfirmedInTheTimeKeptForIt) {
  search_.waiting = {{.case_name = "small", .candidate_id = "b", .screened_speedup = 4}};
  const EndReserve kept = reserve({.wall_s = 100});
  const double promotion_s = kept.promotion_s();
  EXPECT_LT(promotion_s, reserve({}).promotion_s({search_.leaders.begin(), search_.leaders.end()}))
      << "who challenges would be promoted, and is faster";
  const double now_s = 100 - promotion_s - 1;  // less than a confirmation
  EXPECT_EQ(kept.spent({.wall_s = now_s}), StopReason::budget_wall);
  EXPECT_TRUE(kept.may_still_confirm(StopReason::budget_wall, {.wall_s = now_s}));
  EXPECT_FALSE(kept.may_still_confirm(StopReason::budget_wall, {.wall_s = now_s + 2}));
  EXPECT_FALSE(kept.may_still_confirm(StopReason::asked_to_stop, {.wall_s = now_s}));
  search_.waiting.clear();
  EXPECT_FALSE(kept.may_still_confirm(StopReason::budget_wall, {.wall_s = now_s}));
}

TEST_F(EndReserveTest, AConfirmationWaitsUntilAQuarterOfTheSearchPaysForIt) {
  EndReserve kept = reserve({});
  EXPECT_FALSE(kept.confirmation_is_due(1e9)) << "nobody waits";
  search_.waiting = {{.case_name = "small", .candidate_id = "b", .screened_speedup = 4}};
  // 0.6 of the control's 20 s a case.
  EXPECT_FALSE(kept.confirmation_is_due(47.9));
  EXPECT_TRUE(kept.confirmation_is_due(48.1));
  kept.note_confirmed(2, 6);  // they took 3 s a case
  EXPECT_FALSE(kept.confirmation_is_due(35.9));
  EXPECT_TRUE(kept.confirmation_is_due(36.1));
  EXPECT_EQ(kept.confirming_s(), 6);
}

TEST_F(EndReserveTest, APromotionIsNeverLeftLessThanNothing) {
  EXPECT_EQ(reserve({.wall_s = 100}).left_for_promotion_s({.wall_s = 60}), 40 - kReportSeconds);
  EXPECT_EQ(reserve({.wall_s = 100}).left_for_promotion_s({.wall_s = 200}), 0);
  EXPECT_EQ(reserve({.wall_s = 100, .device_s = 10}).left_for_promotion_s({.device_s = 4}), 6);
}

}  // namespace
}  // namespace kbeam
