#include "propose/model_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace kbeam {
namespace {

CollectedReply collect(ModelApi api, const std::string& bytes) {
  const auto collector = ReplyCollector::make(api);
  for (const char c : bytes) collector->feed({&c, 1});
  return collector->finish();
}

TEST(ModelApi, AStreamOfCompletions) {
  const CollectedReply reply = collect(
      ModelApi::openai, R"(data: {"choices":[{"delta":{"role":"assistant","content":"one "}}]})"
                        "\n\n"
                        R"(data: {"choices":[{"delta":{"content":"two"},"finish_reason":null}]})"
                        "\n\n"
                        R"(data: {"choices":[{"delta":{},"finish_reason":"stop"}]})"
                        "\n\n"
                        R"(data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}})"
                        "\n\n"
                        "data: [DONE]\n\n");
  EXPECT_EQ(reply.text, "one two");
  EXPECT_TRUE(reply.ended);
  EXPECT_FALSE(reply.at_limit);
  EXPECT_EQ(reply.tokens_in, 11);
  EXPECT_EQ(reply.tokens_out, 7);
}

TEST(ModelApi, AStreamOfMessages) {
  const CollectedReply reply = collect(
      ModelApi::anthropic,
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"usage":{"input_tokens":5,)"
      R"("cache_read_input_tokens":20,"output_tokens":1}}})"
      "\n\n"
      R"(data: {"type":"content_block_start","content_block":{"type":"text","text":""}})"
      "\n\n"
      R"(data: {"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}})"
      "\n\n"
      R"(data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"yes"}})"
      "\n\n"
      "event: ping\ndata: {\"type\":\"ping\"}\n\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}})"
      "\n\n"
      R"(data: {"type":"message_stop"})"
      "\n\n");
  EXPECT_EQ(reply.text, "yes");
  EXPECT_TRUE(reply.ended);
  EXPECT_TRUE(reply.at_limit);
  EXPECT_EQ(reply.tokens_in, 25);
  EXPECT_EQ(reply.tokens_out, 9);
}

TEST(ModelApi, TheCountOfABrokenStreamIsNobodysReport) {
  const std::string start =
      R"(data: {"type":"message_start","message":{"usage":{"input_tokens":5,)"
      R"("cache_read_input_tokens":20,"output_tokens":3}}})"
      "\n\n"
      R"(data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a long reply"}})"
      "\n\n";
  const CollectedReply broken = collect(ModelApi::anthropic, start);
  EXPECT_TRUE(broken.understood);
  EXPECT_FALSE(broken.ended);
  EXPECT_EQ(broken.tokens_in, 25);
  EXPECT_FALSE(broken.tokens_out) << "what message_start says of the output is a beginning";
  // Some servers say the input again at the end, with the cache or without.
  const CollectedReply whole =
      collect(ModelApi::anthropic,
              start + R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},)"
                      R"("usage":{"input_tokens":5,"output_tokens":9}})"
                      "\n\n");
  EXPECT_EQ(whole.tokens_in, 25);
  EXPECT_EQ(whole.tokens_out, 9);
}

TEST(ModelApi, ABusyServerIsToldFromOneThatRefuses) {
  const auto error = [](const char* body) {
    return "data: {\"type\":\"error\",\"error\":" + std::string(body) + "}\n\n";
  };
  for (const ModelApi api : {ModelApi::openai, ModelApi::anthropic}) {
    for (const char* const busy :
         {R"({"type":"overloaded_error","message":"m"})",
          R"({"type":"rate_limit_error","message":"m"})", R"({"type":"api_error","message":"m"})",
          R"({"type":"timeout_error","message":"m"})", R"({"type":"server_error","message":"m"})",
          R"({"code":503,"message":"m"})", R"({"code":"rate_limit_exceeded","message":"m"})"}) {
      const CollectedReply reply = collect(api, error(busy));
      EXPECT_TRUE(reply.is_busy) << busy;
      EXPECT_EQ(reply.complaint, "m");
      EXPECT_FALSE(reply.understood) << "nothing of a reply came, so nothing is charged";
    }
    for (const char* const final :
         {R"({"type":"invalid_request_error","message":"m"})", R"({"code":400,"message":"m"})",
          R"({"type":"authentication_error","message":"m"})", R"("m")"})
      EXPECT_FALSE(collect(api, error(final)).is_busy) << final;
  }
}

TEST(ModelApi, WholeRepliesAreReadToo) {
  const CollectedReply openai = collect(
      ModelApi::openai, R"({"choices":[{"message":{"content":"hello"},"finish_reason":"length"}],)"
                        R"("usage":{"prompt_tokens":1,"completion_tokens":2}})");
  EXPECT_EQ(openai.text, "hello");
  EXPECT_TRUE(openai.ended && openai.at_limit);
  const CollectedReply anthropic =
      collect(ModelApi::anthropic,
              R"({"content":[{"type":"text","text":"hello"}],"stop_reason":"refusal"})");
  EXPECT_TRUE(anthropic.ended && anthropic.refused);
  EXPECT_FALSE(anthropic.tokens_in) << "nobody reported any";
}

TEST(ModelApi, WhatIsNotOfTheProtocolIsNotUnderstood) {
  for (const ModelApi api : {ModelApi::openai, ModelApi::anthropic})
    for (const char* const bytes :
         {"", "<html>busy</html>", "data: nonsense\n\n", "data: [1,2]\n\ndata: [DONE]\n\n",
          "{\"choices\": 7}", "data: {\"choices\":\"x\",\"usage\":{\"prompt_tokens\":-5}}\n\n"}) {
      const CollectedReply reply = collect(api, bytes);
      EXPECT_FALSE(reply.understood) << bytes;
      EXPECT_FALSE(reply.ended) << bytes;
      EXPECT_FALSE(reply.tokens_in) << bytes;
    }
}

TEST(ModelApi, AStreamThatBreaksOffHasNotEnded) {
  const CollectedReply reply =
      collect(ModelApi::openai, R"(data: {"choices":[{"delta":{"content":"half of"}}]})"
                                "\n\n");
  EXPECT_TRUE(reply.understood);
  EXPECT_FALSE(reply.ended);
  EXPECT_EQ(reply.text, "half of");
}

TEST(ModelApi, ErrorsAndToolsInsideAStream) {
  EXPECT_EQ(collect(ModelApi::openai, R"(data: {"error":{"message":"overloaded"}})"
                                      "\n\n")
                .complaint,
            "overloaded");
  EXPECT_EQ(
      collect(ModelApi::anthropic, R"(data: {"type":"error","error":{"message":"overloaded"}})"
                                   "\n\n")
          .complaint,
      "overloaded");
  EXPECT_TRUE(collect(ModelApi::openai,
                      R"(data: {"choices":[{"delta":{"tool_calls":[{"id":"1"}]}}]})"
                      "\n\n")
                  .used_tools);
  EXPECT_TRUE(collect(ModelApi::anthropic,
                      R"(data: {"type":"content_block_start","content_block":{"type":"tool_use"}})"
                      "\n\n")
                  .used_tools);
}

TEST(ModelApi, AddressesAreCompletedAndKeepNoSecret) {
  EXPECT_EQ(*request_url(ModelApi::openai, "http://localhost:8080/v1/", true),
            "http://localhost:8080/v1/chat/completions");
  EXPECT_EQ(*request_url(ModelApi::openai, "https://host", true),
            "https://host/v1/chat/completions");
  EXPECT_EQ(*request_url(ModelApi::anthropic, "https://host/v1/messages", true),
            "https://host/v1/messages");
  for (const char* const url :
       {"https://user:topsecret@host/v1", "https://host/v1?key=topsecret"}) {
    const auto refused = request_url(ModelApi::openai, url, false);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().text().find("topsecret"), std::string::npos)
        << refused.error().text();
  }
  EXPECT_FALSE(request_url(ModelApi::openai, "http://example.org/v1", true).ok());
  EXPECT_TRUE(request_url(ModelApi::openai, "http://example.org/v1", false).ok());
  EXPECT_TRUE(request_url(ModelApi::openai, "http://[::1]:80/v1", true).ok());
  for (const char* elsewhere : {"http://127.example.org/v1", "http://127.0.0.1.example.org/v1"})
    EXPECT_FALSE(request_url(ModelApi::openai, elsewhere, true).ok()) << elsewhere;
  EXPECT_TRUE(is_on_this_machine("http://127.0.0.1:8080/v1"));
  EXPECT_FALSE(is_on_this_machine("https://127.example.org/v1"));
  EXPECT_FALSE(request_url(ModelApi::openai, "ftp://host", false).ok());
  EXPECT_EQ(guess_api("https://api.anthropic.com"), ModelApi::anthropic);
  EXPECT_EQ(guess_api("http://localhost:8080/v1"), ModelApi::openai);
}

TEST(ModelApi, AReplyThatNestsWithoutEndIsNoProtocol) {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  for (const ModelApi api : {ModelApi::openai, ModelApi::anthropic})
    for (const char* before : {"", "data: "}) {
      const auto collector = ReplyCollector::make(api);
      collector->feed(before + (R"({"type":"error","error":{"x":)" + deep) + "}}\n\n");
      EXPECT_FALSE(collector->finish().understood);
    }
}

TEST(ModelApi, BodiesHaveWhatEachProtocolWants) {
  const Prompt prompt{"be brief", {{false, "hello"}, {true, "yes?"}, {false, "again"}}};
  const Json openai = Json::parse(request_body(ModelApi::openai, {"m", prompt, 100, {}}));
  EXPECT_EQ(openai["messages"].size(), 4u);
  EXPECT_EQ(openai["messages"][0]["role"], "system");
  EXPECT_EQ(openai["max_tokens"], 100);
  EXPECT_TRUE(openai["stream_options"]["include_usage"].get<bool>());
  const Json anthropic = Json::parse(request_body(ModelApi::anthropic, {"m", prompt, 100, {}}));
  EXPECT_EQ(anthropic["messages"].size(), 3u);
  EXPECT_EQ(anthropic["system"], "be brief");

  ApiQuirks quirks;
  EXPECT_FALSE(quirks.learn_from("no such model"));
  EXPECT_TRUE(quirks.learn_from("unknown field stream_options"));
  EXPECT_FALSE(quirks.learn_from("unknown field stream_options")) << "known: no use in trying";
  EXPECT_TRUE(quirks.learn_from("use 'max_completion_tokens' instead"));
  const Json other = Json::parse(request_body(ModelApi::openai, {"m", prompt, 100, quirks}));
  EXPECT_FALSE(other.contains("stream_options") || other.contains("max_tokens"));
  EXPECT_EQ(other["max_completion_tokens"], 100);
}

TEST(ModelApi, TheKeyIsInOneHeader) {
  const Secret key("sk-0123456789abcdef");
  EXPECT_EQ(request_headers(ModelApi::openai, key).back(), "Authorization: Bearer " + key.reveal());
  EXPECT_EQ(request_headers(ModelApi::anthropic, key).back(), "x-api-key: " + key.reveal());
  for (const std::string& header : request_headers(ModelApi::openai, Secret()))
    EXPECT_EQ(header.find("Authorization"), std::string::npos);
}

}  // namespace
}  // namespace kbeam
