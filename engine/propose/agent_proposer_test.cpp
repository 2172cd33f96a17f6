// Sessions of scripted agents: one that works, and those that hang, destroy, flood and die.
#include "propose/agent_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kCode = "// #include <kbeam/candidate.h>";

// An agent without the kbeam program: it speaks to the socket by itself.
std::string speak(const std::string& command, const std::string& idea, const std::string& source) {
  return "/usr/bin/python3 -c '\nimport json, os, socket\ns = socket.socket(socket.AF_UNIX)\n"
         "s.connect(os.environ[\"KBEAM_SOCKET\"])\n"
         "s.sendall((json.dumps({\"command\": \"" +
         command + "\", \"arguments\": {\"--idea\": [\"" + idea +
         "\"], \"--family\": [\"wide\"]}, \"file_name\": \"mine.cpp\", \"source\": \"" + source +
         "\"}) + \"\\n\").encode())\nprint(s.makefile().readline())\n'\n";
}

class AgentProposerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_agent_sandbox(); !why.empty()) GTEST_SKIP() << why;
    ::setenv("TMPDIR", folder_.c_str(), 1);  // sessions of others are none of ours
    settings_.name = "agent:test";
    context_->problem = "softmax";
    context_->target = "cpu";
    context_->statement = "make it fast";
    context_->steering = {"a tester: try wider vectors"};
    context_->sources = {{.title = "first", .source_name = "../../first.cpp", .source = "// one"}};
  }

  std::unique_ptr<Proposer> make(const std::string& command) {
    settings_.command = command;
    AgentTools tools{.kbeam = "/bin/true",
                     .contract_include = fs::path(KBEAM_SOURCE_DIR) / "contract/include",
                     .run =
                         [this](const AgentRequest& request, const std::function<bool()>&) {
                           commands_.push_back(request.command);
                           return AgentReply{0, "served\n", ""};
                         },
                     .clock = &clock_};
    return make_agent_proposer(settings_, tools, bell_).value();
  }

  struct Session {
    RequestRecord request;
    ReplyRecord reply;
    std::vector<Delivery> deliveries;
  };
  Session run(Proposer& proposer, int number = 1) {
    Session session;
    proposer.ask({.number = number, .role = Role::structural, .context = context_});
    for (bool ended = false; !ended;) {
      for (ProposerNews& news : proposer.take_news({})) {
        if (auto* request = std::get_if<RequestRecord>(&news)) {
          session.request = *request;
          proposer.allow(request->id);
        } else if (auto* delivery = std::get_if<Delivery>(&news)) {
          session.deliveries.push_back(*delivery);
        } else if (auto* reply = std::get_if<ReplyRecord>(&news)) {
          session.reply = *reply;
          ended = true;
        }
      }
      if (!ended) bell_.wait(5);
    }
    return session;
  }
  static int count_sessions() {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(fs::temp_directory_path()))
      count += entry.path().filename().string().starts_with("kbeam-agent-") ? 1 : 0;
    return count;
  }

  void TearDown() override {
    ::unsetenv("TMPDIR");
    fs::remove_all(folder_);
  }

  fs::path folder_ = make_temporary_folder("/tmp", "kbeam-agents-").value();
  SystemClock clock_;
  NewsBell bell_;
  AgentSettings settings_;
  std::shared_ptr<ProposalContext> context_ = std::make_shared<ProposalContext>();
  std::vector<std::string> commands_;
};

TEST_F(AgentProposerTest, WhatIsSubmittedIsProposedUnderItsName) {
  const auto agent = make(speak("submit", "wider vectors", kCode));
  EXPECT_EQ(agent->state(), ProposerState::ready);
  const Session session = run(*agent);
  EXPECT_EQ(session.request.step, "session");
  EXPECT_THAT(session.request.prompt, HasSubstr("try wider vectors"));
  ASSERT_EQ(session.deliveries.size(), 1u);
  const Delivery& delivery = session.deliveries.front();
  EXPECT_EQ(delivery.id, "agent:test#1/1");
  EXPECT_EQ(delivery.request_id, session.request.id);
  EXPECT_EQ(delivery.idea.source, "agent:test");
  EXPECT_EQ(delivery.idea.family, "wide");
  EXPECT_EQ(delivery.idea.text, "wider vectors");
  EXPECT_EQ(delivery.source, kCode);
  EXPECT_EQ(delivery.source_name, "mine.cpp");
  EXPECT_EQ(session.reply.outcome, ReplyOutcome::delivered) << session.reply.detail;
  EXPECT_THAT(session.reply.text, HasSubstr("submitted as agent:test#1/1"));
  EXPECT_EQ(agent->state(), ProposerState::ready);
}

TEST_F(AgentProposerTest, AGrantedKeyIsNotRecorded) {
  ::setenv("KBEAM_TEST_AGENT_KEY", "ak-0123456789abcdef", 1);
  settings_.access.environment = {"KBEAM_TEST_AGENT_KEY"};
  const auto agent =
      make("echo my key is $KBEAM_TEST_AGENT_KEY; " +
           speak("submit", "use ak-0123456789abcdef", kCode + " ak-0123456789abcdef"));
  const Session session = run(*agent);
  ::unsetenv("KBEAM_TEST_AGENT_KEY");
  EXPECT_THAT(session.reply.text, HasSubstr("my key is [key]"));
  ASSERT_EQ(session.deliveries.size(), 1u);
  EXPECT_EQ(session.deliveries.front().idea.text, "use [key]");
  EXPECT_EQ(session.deliveries.front().source, kCode + " [key]");
}

TEST_F(AgentProposerTest, ItsWorkspaceHoldsWhatAProposerMayKnow) {
  const auto agent = make(
      "cat problem_statement.md AGENTS.md sources/first.cpp candidate.cpp; "
      "echo; test -s contract/kbeam/candidate.h && echo contract; ls /workspace/..");
  const Session session = run(*agent);
  EXPECT_THAT(session.reply.text,
              AllOf(HasSubstr("make it fast"), HasSubstr("kbeam check candidate.cpp"),
                    HasSubstr("// one"), HasSubstr("\ncontract\n")));
  EXPECT_THAT(session.reply.text, Not(HasSubstr("\nroot\n")));
  EXPECT_EQ(session.reply.outcome, ReplyOutcome::no_ideas);
}

TEST_F(AgentProposerTest, OneThatHangsIsEndedWithAllThatItStarted) {
  settings_.session_s = 1;
  const auto agent = make("setsid sleep 4321.5 & sleep 4321.5");
  const Session session = run(*agent);
  EXPECT_EQ(session.reply.outcome, ReplyOutcome::timed_out);
  EXPECT_EQ(count_sessions(), 0);
}

TEST_F(AgentProposerTest, OneThatDestroysItsWorkspaceHarmsNothing) {
  const auto agent =
      make("chmod 0 profile; rm -rf ./* .??* 2>/dev/null; rm -rf /run /opt 2>/dev/null; exit 3");
  const Session session = run(*agent);
  EXPECT_EQ(session.reply.outcome, ReplyOutcome::no_ideas);
  EXPECT_THAT(session.reply.detail, HasSubstr("exit code 3"));
  EXPECT_EQ(count_sessions(), 0);
}

TEST_F(AgentProposerTest, ItsLogIsBounded) {
  const auto agent = make("head -c 2000000 /dev/zero | tr '\\0' x");
  EXPECT_LT(run(*agent).reply.text.size(), 80'000u);
}

TEST_F(AgentProposerTest, RequestsAreLimitedInTheirRateAndSubmissionsInTheirNumber) {
  settings_.points_per_minute = 10;
  settings_.submissions = 2;
  std::string script;
  for (int i = 0; i < 3; ++i) script += speak("submit", "idea", kCode + std::to_string(i));
  for (int i = 0; i < 5; ++i) script += speak("check", "", "");
  const auto agent = make(script);
  const Session session = run(*agent);
  EXPECT_EQ(session.deliveries.size(), 2u);
  EXPECT_THAT(session.reply.text, HasSubstr("as much as it may"));
  EXPECT_THAT(session.reply.text, HasSubstr("too many requests"));
  EXPECT_GE(commands_.size(), 1u);
  EXPECT_LT(commands_.size(), 5u);
}

TEST_F(AgentProposerTest, ASubmissionThatIsNoneIsRefused) {
  const auto agent =
      make(speak("submit", "", kCode) + speak("submit", "idea", "") +
           speak("submit", "two\\nlines", kCode) + speak("submit", "idea", "root:x:0:0"));
  const Session session = run(*agent);
  EXPECT_TRUE(session.deliveries.empty());
  EXPECT_THAT(session.reply.text, AllOf(HasSubstr("--idea is"), HasSubstr("the source is empty"),
                                        HasSubstr("it is no candidate")));
}

TEST_F(AgentProposerTest, TheEndOfTheCampaignEndsItsSession) {
  auto agent = make("sleep 4321.5");
  agent->ask({.number = 1, .role = Role::exploit, .context = context_});
  for (const ProposerNews& news : agent->take_news({}))
    agent->allow(std::get<RequestRecord>(news).id);
  EXPECT_EQ(agent->state(), ProposerState::working);
  agent.reset();
  EXPECT_EQ(count_sessions(), 0);
}

TEST_F(AgentProposerTest, OneThatNeverBringsAnythingIsLeftAlone) {
  const auto agent = make("exit 1");
  for (int number = 1; number <= 3; ++number) {
    run(*agent, number);
    EXPECT_NE(agent->state(), ProposerState::ready);
  }
  EXPECT_EQ(agent->state(), ProposerState::finished);
}

TEST_F(AgentProposerTest, OneThatBringsWhatIsKnownForEverIsLeftAloneToo) {
  const auto agent = make(speak("submit", "once", kCode) + speak("submit", "twice", kCode));
  for (int number = 1; number <= 3; ++number) {
    const Session session = run(*agent, number);
    EXPECT_NE(agent->state(), ProposerState::finished) << "nobody said yet that they are known";
    for (const Delivery& delivery : session.deliveries)
      agent->tell({.delivery_id = delivery.id, .first = true, .duplicate = true});
    EXPECT_NE(agent->state(), ProposerState::ready);
  }
  EXPECT_EQ(agent->state(), ProposerState::finished);
}

TEST_F(AgentProposerTest, OneNewSourceMakesUpForThoseThatAreKnown) {
  const auto agent = make(speak("submit", "old", kCode) + speak("submit", "new", kCode + "2"));
  for (int number = 1; number <= 4; ++number) {
    const Session session = run(*agent, number);
    agent->tell({.delivery_id = session.deliveries.at(0).id, .first = true, .duplicate = true});
    EXPECT_EQ(agent->state(), ProposerState::ready);
  }
}

TEST_F(AgentProposerTest, SettingsSurviveTheArchive) {
  settings_.command = "codex exec 'x'";
  settings_.access = {true, {"~/a"}, {"/b"}, {"KEY"}};
  settings_.session_s = 12;
  const auto again = agent_settings_from_json(to_json(settings_));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(to_json(*again), to_json(settings_));
  EXPECT_FALSE(agent_settings_from_json({{"name", "x"}}).ok());
}

}  // namespace
}  // namespace kbeam
