#include "loop/rerun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "propose/agent_proposer.h"
#include "propose/llm_options.h"

namespace kbeam {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Rerun, SaysAllThatTheRunWasGiven) {
  CampaignConfig config{.problem_name = "softmax", .grade = "fp32", .goal = "geomean <= 2ms"};
  config.seed = 42;
  config.budget = {.wall_s = 180, .evaluations = 9, .device_s = 90, .tokens = 5000, .money = 2.5};
  EXPECT_EQ(
      rerun_command(config, Json::array()),
      "kbeam run softmax --target cpu --proposer builtin --seed 42 --grade fp32 --budget 180s "
      "--evaluations 9 --device-time 90s --tokens 5000 --money 2.5 --goal 'geomean <= 2ms'");
  config.search = "random";
  config.problem_folder = "/elsewhere/my problem";
  EXPECT_THAT(rerun_command(config, Json::array()),
              AllOf(HasSubstr("kbeam run '/elsewhere/my problem'"), HasSubstr("--search random")));
}

TEST(Rerun, NamesEveryProposerWithWhatItNeeds) {
  const auto llm = parse_llm_options({.url = "http://localhost:8080/v1",
                                      .models = {"small=1/2", "big"},
                                      .key = "env:MY_KEY",
                                      .settings = {"ideas=5", "wait_s=0.5"}});
  ASSERT_TRUE(llm.ok());
  const AgentSettings agent{.name = "agent:sh",
                            .command = "sh 'it'",
                            .access = {.network = true, .environment = {"AGENT_KEY"}},
                            .session_s = 900};
  const Json proposers = Json::array(
      {{{"kind", "llm"}, {"name", "llm:http://localhost:8080/v1"}, {"llm", to_json(*llm)}},
       {{"kind", "agent"}, {"settings", to_json(agent)}}});
  const CampaignConfig config{
      .problem_name = "softmax",
      .proposer = "builtin + llm:http://localhost:8080/v1 + agent:sh + replay:runs/x"};
  EXPECT_THAT(
      rerun_command(config, proposers),
      HasSubstr("--proposer builtin --proposer llm:http://localhost:8080/v1 --model small=1/2 "
                "--model big --key env:MY_KEY --llm ideas=5 --llm wait_s=0.5 --proposer "
                "'agent:sh '\\''it'\\''' --agent-allow network --agent-allow env:AGENT_KEY "
                "--agent-time 900s --proposer replay:runs/x --seed"));
}

TEST(Rerun, WhatTwoProposersShareIsSaidOnce) {
  Json proposers = Json::array();
  for (const char* url : {"http://a/v1", "http://b/v1"})
    proposers.push_back(
        {{"kind", "llm"},
         {"name", std::string("llm:") + url},
         {"llm", to_json(parse_llm_options({.url = url, .models = {"small"}}).value())}});
  const std::string command = rerun_command(
      {.problem_name = "softmax", .proposer = "llm:http://a/v1 + llm:http://b/v1"}, proposers);
  EXPECT_THAT(command, HasSubstr("--proposer llm:http://a/v1 --model small --proposer "
                                 "llm:http://b/v1 --seed"));
}

}  // namespace
}  // namespace kbeam
