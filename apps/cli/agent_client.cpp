#include "apps/cli/agent_client.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "apps/cli/bench_tools.h"
#include "base/files.h"
#include "propose/agent_sandbox.h"
#include "propose/agent_socket.h"

namespace kbeam::cli {
namespace {

using Kind = OptionSpec::Kind;

int ask_campaign(const Options& options, const std::string& command) {
  const auto reply = [&]() -> Result<AgentReply> {
    AgentRequest request{
        .command = command, .arguments = options.values, .file_name = {}, .source = {}};
    if (options.has("FILE")) {
      ASSIGN_OR_RETURN(request.source, read_file(options.get("FILE")));
      request.file_name = std::filesystem::path(options.get("FILE")).filename().string();
      request.arguments.erase("FILE");
    }
    return ask_agent_socket(std::getenv(kAgentSocketVariable), request);
  }();
  if (!reply.ok()) return report_error(reply.error(), options);
  fmt::print("{}", reply->output);
  fmt::print(stderr, "{}", reply->errors);
  return reply->exit_code;
}

template <char const* kCommand>
int ask_as(const Options& options) {
  return ask_campaign(options, kCommand);
}
constexpr char kCheck[] = "check", kBench[] = "bench", kProfile[] = "profile", kSubmit[] = "submit",
               kAsk[] = "ask";

}  // namespace

bool is_in_agent_room() {
  const char* const socket = std::getenv(kAgentSocketVariable);
  return socket != nullptr && *socket != '\0';
}

std::vector<Command> agent_room_commands() {
  const OptionSpec file{"FILE", "FILE", "one source that includes kbeam/candidate.h", "",
                        Kind::required};
  const OptionSpec knob{"--knob", "NAME=VALUE", "sets a knob; may be given again", "",
                        Kind::repeated};
  const OptionSpec one_case{"--case", "NAME", "only this case; may be given again", "",
                            Kind::repeated};
  return {
      {"check",
       "judge whether a candidate is right, on every case",
       "kbeam check candidate.cpp",
       {file, one_case, knob},
       "the candidate was rejected",
       ask_as<kCheck>},
      {"bench",
       "check a candidate and time it against the baseline",
       "kbeam bench candidate.cpp",
       {file, knob},
       "the candidate was rejected, or is not faster on every case",
       ask_as<kBench>},
      {"profile",
       "what the compiler made of a candidate",
       "kbeam profile candidate.cpp",
       {file, one_case, knob},
       "a case has no plan",
       ask_as<kProfile>},
      {"submit",
       "hand a candidate to the campaign",
       "kbeam submit candidate.cpp --idea 'keep two rows in registers' --family register_rows",
       {file,
        {"--idea", "TEXT", "one sentence on what should be faster and why", "", Kind::required},
        {"--family", "NAME", "the line that it belongs to", "agent"}},
       "this session has submitted as much as it may",
       ask_as<kSubmit>},
      {"ask",
       "ask about the campaign",
       "kbeam ask 'who are the champions?'",
       {{"QUESTION", "QUESTION", "such as 'why was family 3 dropped?'", "", Kind::required}},
       "the archive does not answer that; what can be asked is listed",
       ask_as<kAsk>},
  };
}

}  // namespace kbeam::cli
