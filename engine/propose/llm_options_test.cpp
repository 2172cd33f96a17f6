#include "propose/llm_options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kbeam {
namespace {

TEST(LlmOptions, AsTypedAndBackFromTheRecord) {
  const auto options = parse_llm_options({.url = "http://localhost:8080/v1",
                                          .models = {"small", "lab/big:7b=3/15.5"},
                                          .key = "env:MY_KEY",
                                          .settings = {"ideas=5", "stall_s=2.5"}});
  ASSERT_TRUE(options.ok()) << options.error().text();
  EXPECT_EQ(options->api, ModelApi::openai);
  ASSERT_EQ(options->models.size(), 2u);
  EXPECT_EQ(options->models[1].model, "lab/big:7b");
  EXPECT_DOUBLE_EQ(options->models[1].money(1'000'000, 2'000'000), 34);
  EXPECT_EQ(options->models[0].money(1000, 1000), 0);
  EXPECT_EQ(options->ideas, 5);
  EXPECT_EQ(options->limits.stall_s, 2.5);
  const auto again = llm_options_from_json(to_json(*options));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(to_json(*again), to_json(*options));
}

TEST(LlmOptions, AuthoritiesAreForAddressesThatHaveACertificate) {
  const auto options = parse_llm_options(
      {.url = "https://host/v1", .models = {"m"}, .authorities = "/etc/ours.pem"});
  ASSERT_TRUE(options.ok()) << options.error().text();
  EXPECT_EQ(llm_options_from_json(to_json(*options))->authorities, "/etc/ours.pem");
  Json older = to_json(*options);
  older.erase("authorities");
  EXPECT_EQ(llm_options_from_json(older)->authorities, "");
  EXPECT_FALSE(parse_llm_options(
                   {.url = "http://localhost/v1", .models = {"m"}, .authorities = "/etc/ours.pem"})
                   .ok());
}

TEST(LlmOptions, EveryMistakeIsToldAtOnceWithoutWhatMayBeAKey) {
  const auto wrong = parse_llm_options({.url = "https://host/v1",
                                        .api = "grpc",
                                        .models = {"m=3", "=1/2"},
                                        .key = "sk-0123456789abcdef",
                                        .settings = {"idaes=3", "ideas=many", "repairs=99"}});
  ASSERT_FALSE(wrong.ok());
  const std::string text = wrong.error().text();
  for (const char* const part : {"grpc", "m=3", "=1/2", "did you mean ideas?", "ideas=many",
                                 "repairs=99", "does not belong on a command line"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  EXPECT_EQ(text.find("0123456789"), std::string::npos) << text;
  EXPECT_FALSE(parse_llm_options({.url = "https://host/v1"}).ok()) << "no model";
}

}  // namespace
}  // namespace kbeam
