#include "propose/reply_reader.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

constexpr char kIdea[] =
    R"({"family": "Rows in Registers!", "category": "parallelism", "hypothesis": "hold rows",
        "expected_gain": "1.3 x", "risk": "spills"})";

std::string source_block(const std::string& fence = "```") {
  return fence + "cpp\n#include <kbeam/candidate.h>\nKBEAM_PLAN(plan, args) {}\n" + fence + "\n";
}

TEST(ReadIdeas, BareInABlockOrAmongWords) {
  for (const std::string& reply :
       {"{\"ideas\": [" + std::string(kIdea) + "]}", "[" + std::string(kIdea) + "]",
        "Here you are:\n```json\n{\"ideas\": [" + std::string(kIdea) + "]}\n```\nGood luck!",
        "Sure [as {you} asked]. " + std::string(kIdea) + " That is all."}) {
    const IdeasReply read = read_ideas(reply, 3);
    ASSERT_EQ(read.outcome, ReplyOutcome::delivered) << reply;
    ASSERT_EQ(read.ideas.size(), 1u);
    EXPECT_EQ(read.ideas[0].family, "rows_in_registers");
    EXPECT_EQ(read.ideas[0].hypothesis, "hold rows");
    EXPECT_EQ(read.ideas[0].expected, "1.3 x");
  }
}

TEST(ReadIdeas, NoMoreThanAskedForAndNoneWithoutAHypothesis) {
  const std::string two = "[" + std::string(kIdea) + "," + kIdea + ", {\"family\": \"x\"}, 7]";
  EXPECT_EQ(read_ideas(two, 1).ideas.size(), 1u);
  EXPECT_EQ(read_ideas(two, 9).ideas.size(), 2u);
  EXPECT_EQ(read_ideas("{\"ideas\": []}", 3).outcome, ReplyOutcome::no_ideas);
}

TEST(ReadIdeas, WhatIsNoListOfIdeasHasItsName) {
  EXPECT_EQ(read_ideas("I would unroll the loop.", 3).outcome, ReplyOutcome::not_json);
  EXPECT_EQ(read_ideas("{\"ideas\": [{\"family\": \"cut o", 3).outcome, ReplyOutcome::not_json);
  EXPECT_EQ(read_ideas("I'm sorry, but I can't help with that.", 3).outcome, ReplyOutcome::refused);
  EXPECT_EQ(read_ideas("", 3).outcome, ReplyOutcome::not_json);
  EXPECT_EQ(read_ideas(std::string(100'000, '['), 3).outcome, ReplyOutcome::not_json);
  EXPECT_EQ(read_ideas("[" + std::string(kIdea) + "]" + std::string(300'000, ' '), 3).outcome,
            ReplyOutcome::not_json);
}

TEST(ReadIdeas, WhatAsksForMoreThanIdeasIsLeftOut) {
  const IdeasReply both = read_ideas(
      R"([{"hypothesis": "h", "family": "f", "command": "rm -rf /", "verdict": "accepted"}])", 3);
  EXPECT_EQ(both.outcome, ReplyOutcome::delivered);
  EXPECT_EQ(both.detail, "left out: command, verdict");
  EXPECT_EQ(read_ideas(R"([{"tool": "shell", "arguments": "ls"}])", 3).outcome,
            ReplyOutcome::overstepped);
}

TEST(ReadIdeas, LengthsAreBounded) {
  std::string umlauts;
  for (int i = 0; i < 2000; ++i) umlauts += "\xC3\xBC";
  const IdeasReply read =
      read_ideas("[{\"hypothesis\": \"x" + umlauts + "\", \"family\": \"" + umlauts + "\"}]", 1);
  ASSERT_EQ(read.ideas.size(), 1u);
  EXPECT_LE(read.ideas[0].hypothesis.size(), 1200u);
  EXPECT_EQ(read.ideas[0].hypothesis.size() % 2, 1u) << "no character is cut in two";
  EXPECT_EQ(read.ideas[0].family, "x");
}

TEST(ReadCode, TheOneBlockWithAPlan) {
  const CodeReply plain = read_code("Here:\n" + source_block());
  EXPECT_EQ(plain.outcome, ReplyOutcome::delivered);
  EXPECT_EQ(plain.source, "#include <kbeam/candidate.h>\nKBEAM_PLAN(plan, args) {}\n");
  const CodeReply quoting =
      read_code("The old loop\n```\nfor (;;) {}\n```\nbecomes\n" + source_block("````"));
  EXPECT_EQ(quoting.outcome, ReplyOutcome::delivered);
}

TEST(ReadCode, EveryOtherReplyHasItsName) {
  EXPECT_EQ(read_code("Unroll it four times.").outcome, ReplyOutcome::no_code_block);
  EXPECT_EQ(read_code(source_block() + source_block()).outcome, ReplyOutcome::several_files);
  EXPECT_EQ(read_code(source_block().substr(0, 40)).outcome, ReplyOutcome::truncated);
  EXPECT_EQ(read_code("```\nint main() {}\n```\n").outcome, ReplyOutcome::wrong_contract);
  EXPECT_EQ(read_code("```\nKBEAM_PLAN(plan, args) {}\n```\n").outcome,
            ReplyOutcome::wrong_contract);
  EXPECT_EQ(read_code("I cannot help with that request.").outcome, ReplyOutcome::refused);
  EXPECT_EQ(read_code(source_block() + std::string(1, '\0')).outcome, ReplyOutcome::garbled);
  EXPECT_EQ(read_code("").outcome, ReplyOutcome::no_code_block);
}

TEST(PlainName, OnlyWhatAFileNameMayHave) {
  EXPECT_EQ(plain_name("../../etc/passwd"), "etc_passwd");
  EXPECT_EQ(plain_name("<script>"), "script");
  EXPECT_EQ(plain_name("\xC3\xBC\xC3\xBC"), "unnamed");
  EXPECT_LE(plain_name(std::string(500, 'a')).size(), 40u);
}

}  // namespace
}  // namespace kbeam
