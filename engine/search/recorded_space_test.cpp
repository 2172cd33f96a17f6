#include "search/recorded_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "search/simulated_tuning.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCache = R"({
"schema_version": "1.0.0", "device_name": "some card", "kernel_name": "stencil",
"problem_size": [64, 64], "tune_params_keys": ["width", "kind"],
"tune_params": {"width": [2, 4, 8], "kind": ["a", "b"]}, "objective": "time",
"cache": {
"2,a": {"width": 2, "kind": "a", "time": 3.5, "times": [3.4, 3.6]},
"2,b": {"width": 2, "kind": "b", "time": "RuntimeFailedConfig"},
"4,a": {"width": 4, "kind": "a", "time": 1.25},
"8,b": {"width": 8, "kind": "b", "time": 2.0},)";

KnobValues setting(const std::string& width, const std::string& kind) {
  return {{"width", width}, {"kind", kind}};
}

TEST(RecordedSpace, ReadsACacheThatWasNotClosed) {
  const auto record = parse_space(kCache, "open.json");
  ASSERT_TRUE(record.ok()) << record.error().text();
  EXPECT_EQ(record->kernel, "stencil");
  EXPECT_EQ(record->device, "some card");
  ASSERT_EQ(record->settings.size(), 4u);
  EXPECT_EQ(record->settings[1].failure, "RuntimeFailedConfig");
  const RecordedSpace space(*record);
  EXPECT_EQ(space.time_ms(setting("4", "a")), 1.25);
  EXPECT_EQ(space.time_ms(setting("2", "b")), std::nullopt);
  EXPECT_EQ(space.time_ms(setting("8", "a")), std::nullopt);
  EXPECT_EQ(space.best_ms(), 1.25);
  EXPECT_EQ(space.failures(), 1u);
  const KnobSpace knobs = space.space(1);
  EXPECT_TRUE(knobs.allows(setting("8", "b")));
  EXPECT_TRUE(knobs.allows(setting("2", "b")));  // it failed, but it is a setting
  EXPECT_FALSE(knobs.allows(setting("8", "a")));
  EXPECT_TRUE(knobs.allows(knobs.defaults()));
}

TEST(RecordedSpace, ReadsT4) {
  const auto record = parse_space(R"({"schema_version": "1.0.0", "results": [
    {"configuration": {"width": 8, "flag": true}, "times": {}, "invalidity": "correct",
     "correctness": 1, "measurements": [{"name": "power", "value": 9, "unit": "W"},
                                        {"name": "time", "value": 0.5, "unit": "ms"}]},
    {"configuration": {"width": 16, "flag": false}, "times": {}, "invalidity": "compile",
     "correctness": 1, "measurements": [{"name": "time", "value": 1e9, "unit": "ms"}]},
    {"configuration": {"width": 8, "flag": false}, "times": {}, "invalidity": "correct",
     "correctness": 1, "measurements": [{"name": "time", "value": 0.75, "unit": "ms"}]}]})",
                                  "t4.json");
  ASSERT_TRUE(record.ok()) << record.error().text();
  const RecordedSpace space(*record);
  EXPECT_EQ(space.best_ms(), 0.5);
  EXPECT_EQ(space.time_ms({{"width", "8"}, {"flag", "false"}}), 0.75);
  EXPECT_EQ(space.time_ms({{"width", "16"}, {"flag", "false"}}), std::nullopt);
  EXPECT_EQ(space.record().settings[1].failure, "compile");
}

TEST(RecordedSpace, WhatItWritesItReadsAgain) {
  SpaceRecord record = *parse_space(kCache, "it");
  record.knobs[0].fallback = "4";
  const std::string text =
      space_text(record, {{setting("4", "a"), {{"compile_time", 7}}}}, {{"problem", "stencil"}});
  const auto again = parse_space(text, "again");
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(again->knobs[0].fallback, "4");
  EXPECT_EQ(again->knobs[0].choices, record.knobs[0].choices);
  ASSERT_EQ(again->settings.size(), record.settings.size());
  for (std::size_t i = 0; i < record.settings.size(); ++i) {
    EXPECT_EQ(again->settings[i].knobs, record.settings[i].knobs);
    EXPECT_EQ(again->settings[i].time_ms, record.settings[i].time_ms);
  }
  // As others read it: numbers are numbers, the key is the values in the order of the names.
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["cache"]["4,a"]["width"], 4);
  EXPECT_EQ(json["cache"]["4,a"]["compile_time"], 7);
  EXPECT_EQ(json["cache"]["2,b"]["time"], "RuntimeFailedConfig");
}

TEST(RecordedSpace, SaysWhatItCannotRead) {
  const auto refusal = [](const std::string& text) {
    const auto record = parse_space(text, "odd.json");
    return record.ok() ? std::string("read") : record.error().text();
  };
  EXPECT_THAT(refusal("not json"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal("{}"), HasSubstr("neither a cache"));
  EXPECT_THAT(refusal(R"({"tune_params": {"w": [1]}, "cache": {"1": {"w": 1}}})"),
              HasSubstr("no time"));
  EXPECT_THAT(refusal(R"({"tune_params": {"w": [1]}, "cache": {"1": {"v": 1, "time": 2}}})"),
              HasSubstr("does not say its w"));
  EXPECT_THAT(refusal(R"({"tune_params": {"w": [1]}, "cache": {"1": {"w": 1, "time": "bad"}}})"),
              HasSubstr("no setting in it has a time"));
  EXPECT_THAT(refusal(R"({"tune_params": 3, "cache": 4})"), HasSubstr("not objects"));
  EXPECT_THAT(refusal(R"({"results": []})"), HasSubstr("no list of configurations"));
}

// 12 x 12 settings, the best in a corner, a stripe that fails.
RecordedSpace bowl() {
  SpaceRecord record;
  record.knobs = {{"a", "int", "0", {}}, {"b", "int", "0", {}}};
  for (Knob& knob : record.knobs)
    for (int i = 0; i < 12; ++i) knob.choices.push_back(std::to_string(i));
  for (int a = 0; a < 12; ++a)
    for (int b = 0; b < 12; ++b) {
      const bool fails = b == 5;
      record.settings.push_back(
          {{{"a", std::to_string(a)}, {"b", std::to_string(b)}},
           fails ? std::nullopt
                 : std::optional<double>(1 + 0.02 * (a - 9) * (a - 9) + 0.01 * (b - 2) * (b - 2)),
           fails ? "crashed" : ""});
    }
  return RecordedSpace(std::move(record));
}

TEST(SimulatedTuning, DistancesFallToZeroAndRepeat) {
  const RecordedSpace space = bowl();
  for (const TunerStrategy& strategy : tuner_strategies()) {
    const auto distances = simulate_tuning(strategy, space, 3, 1000);
    ASSERT_EQ(distances.size(), 144u) << strategy.name;
    EXPECT_EQ(distances.back(), 0) << strategy.name;
    for (std::size_t i = 1; i < distances.size(); ++i)
      EXPECT_LE(distances[i], distances[i - 1]) << strategy.name;
    EXPECT_EQ(simulate_tuning(strategy, space, 3, 20),
              std::vector<double>(distances.begin(), distances.begin() + 20))
        << strategy.name;
  }
}

TEST(SimulatedTuning, SummaryIsTheMiddleHalf) {
  const double far = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> tunings{
      {far, 0.5, 0.1}, {0.4, 0.4, 0.4}, {0.3}, {far, far, 0.2}, {0.6, 0.0}};
  const DistanceSummary third = summarise_distances(tunings, 3);
  EXPECT_DOUBLE_EQ(third.median, 0.2);
  EXPECT_DOUBLE_EQ(third.low, 0.1);
  EXPECT_DOUBLE_EQ(third.high, 0.3);  // a tuning that ended keeps what it found
  EXPECT_DOUBLE_EQ(summarise_distances(tunings, 1).median, 0.6);
  EXPECT_EQ(summarise_distances(tunings, 1).high, far);
}

}  // namespace
}  // namespace kbeam
