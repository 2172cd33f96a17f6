#include "propose/model_bandit.h"

#include <gtest/gtest.h>

#include <map>

namespace kbeam {
namespace {

// How often each model is asked in `rounds` when each ask gains and costs the same.
std::map<std::string, int> play(const std::map<std::string, std::pair<double, double>>& models,
                                int rounds) {
  std::vector<std::string> names;
  for (const auto& [name, figures] : models) names.push_back(name);
  ModelBandit bandit(names);
  std::map<std::string, int> asked;
  for (int i = 0; i < rounds; ++i) {
    const std::string model = bandit.choose();
    ++asked[model];
    bandit.note_ask(model);
    bandit.note_gain(model, models.at(model).first);
    bandit.note_cost(model, models.at(model).second);
  }
  return asked;
}

TEST(ModelBandit, EveryModelIsTriedFirst) {
  const auto asked = play({{"a", {0.1, 1}}, {"b", {0, 1}}, {"c", {0, 100}}}, 3);
  EXPECT_EQ(asked.size(), 3u);
}

TEST(ModelBandit, TheOneThatGainsIsAskedMost) {
  const auto asked = play({{"good", {0.1, 1}}, {"useless", {0, 1}}}, 200);
  EXPECT_GT(asked.at("good"), 150);
  EXPECT_GE(asked.at("useless"), 2) << "it may have been unlucky";
}

TEST(ModelBandit, GainIsWeighedAgainstCost) {
  // Twice the gain is not worth twenty times the price; it is worth a price that is a little
  // higher.
  EXPECT_GT(play({{"cheap", {0.05, 0.1}}, {"dear", {0.1, 2}}}, 200).at("cheap"), 120);
  EXPECT_GT(play({{"cheap", {0.05, 1}}, {"better", {0.1, 1.2}}}, 200).at("better"), 120);
}

TEST(ModelBandit, AFreeModelDoesNotWinByItsPriceAlone) {
  EXPECT_GT(play({{"free", {0.001, 0}}, {"paid", {0.1, 1}}}, 200).at("paid"), 150);
}

TEST(ModelBandit, TheSameHistoryGivesTheSameChoice) {
  EXPECT_EQ(play({{"a", {0.02, 1}}, {"b", {0.03, 2}}}, 50),
            play({{"a", {0.02, 1}}, {"b", {0.03, 2}}}, 50));
  ModelBandit bandit({"a", "b"});
  bandit.note_ask("unknown");
  bandit.note_gain("unknown", 5);
  EXPECT_EQ(bandit.choose(), "a");
}

}  // namespace
}  // namespace kbeam
