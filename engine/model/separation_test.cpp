// What a separation row says, and that it survives its file.
#include "model/separation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/json_forms.h"

namespace kbeam {
namespace {

using testing::HasSubstr;

SeparationRow sound_row() {
  return {"element_error", "c64", "normal", "u", 3, 16, 40, "known_good/float", "known_wrong/bf16"};
}

TEST(SeparationRow, IsSoundWhenItsLimitStandsBetween) {
  EXPECT_EQ(refusal(sound_row()), "");
  EXPECT_NEAR(sound_row().ratio(), 40.0 / 3, 1e-12);
}

TEST(SeparationRow, IsRefusedBelowTenfold) {
  SeparationRow row = sound_row();
  row.cheat = 29.9;
  EXPECT_THAT(refusal(row), HasSubstr("only 9.967 times"));
  row.cheat = 30;
  EXPECT_EQ(refusal(row), "");
}

TEST(SeparationRow, IsRefusedWhereACheatPassesOrAnHonestCandidateFails) {
  SeparationRow row = sound_row();
  row.honest = 1;
  row.cheat = 16;
  EXPECT_THAT(refusal(row), HasSubstr("known_wrong/bf16 passes"));
  row.honest = 17;
  EXPECT_THAT(refusal(row), HasSubstr("honest known_good/float has 17"));
  row.honest = std::nan("");
  EXPECT_NE(refusal(row), "");
}

TEST(SeparationRow, NeedsNoCheatAndNoErrorOfHonestCandidates) {
  SeparationRow row = sound_row();
  row.cheat = std::nan("");
  EXPECT_EQ(refusal(row), "");
  EXPECT_TRUE(std::isnan(row.ratio()));
  row = sound_row();
  row.honest = row.limit = 0;  // an exact check
  EXPECT_EQ(refusal(row), "");
  EXPECT_EQ(row.ratio(), std::numeric_limits<double>::infinity());
}

TEST(Separation, SurvivesItsFile) {
  Separation separation{"softmax", "fp32", {sound_row(), sound_row()}};
  separation.rows[1].cheat = std::nan("");
  const Result<Separation> back = separation_from_json(to_json(separation));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(json_text(to_json(*back)), json_text(to_json(separation)));
  EXPECT_FALSE(back->rows[1].has_cheat());
  Json damaged = to_json(separation);
  damaged["rows"][0].erase("limit");
  EXPECT_FALSE(separation_from_json(damaged).ok());
}

}  // namespace
}  // namespace kbeam
