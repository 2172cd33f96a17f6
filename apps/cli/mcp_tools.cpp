#include "apps/cli/mcp_tools.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/spelling.h"

namespace kbeam::cli {
namespace {

using Words = std::vector<std::string>;
using Kind = ToolArgument::Kind;

constexpr double kQuick_s = 60;
constexpr double kMeasured_s = 900;
constexpr std::size_t kMostArgumentBytes = 64 << 10;

std::string text(const Json& arguments, const char* name) {
  return arguments.contains(name) ? arguments[name].get<std::string>() : std::string();
}

// Option and value are one word, so that no value is taken for an option.
void add_option(Words& words, const std::string& option, const std::string& value) {
  if (!value.empty()) words.push_back(option + "=" + value);
}
void add_options(Words& words, const std::string& option, const Json& arguments, const char* name) {
  if (!arguments.contains(name)) return;
  for (const Json& value : arguments[name]) add_option(words, option, value.get<std::string>());
}
void add_positional(Words& words, const Words& values) {
  words.push_back("--");
  for (const std::string& value : values)
    if (!value.empty()) words.push_back(value);
}

// A path, or code that is put into a file; exactly one of them.
Result<std::string> source_of(const ToolCall& call, const std::string& file_name,
                              const std::string& code_name) {
  const std::string file = text(call.arguments, file_name.c_str());
  const std::string code = text(call.arguments, code_name.c_str());
  if (file.empty() == code.empty())
    return Error{ErrorCode::bad_input, "find the candidate",
                 file.empty() ? "there is neither a file nor code" : "there are a file and code",
                 fmt::format("give {} or {}", file_name, code_name)};
  if (!file.empty()) return file;
  const std::string ending = text(call.arguments, "target") == "cuda" ? ".cu" : ".cpp";
  const std::filesystem::path path = call.scratch / (code_name + ending);
  RETURN_IF_ERROR(write_file(path, code));
  return path.string();
}

Result<Words> list_problems(const ToolCall&) {
  return Words{"problems"};
}

Result<Words> read_state(const ToolCall& call) {
  Words words{"status"};
  add_positional(words, {text(call.arguments, "run")});
  return words;
}

Words submission(const Json& arguments) {
  Words words{"submit"};
  add_option(words, "--idea", text(arguments, "idea"));
  add_option(words, "--family", text(arguments, "family"));
  add_option(words, "--run", text(arguments, "run"));
  return words;
}

Result<Words> propose(const ToolCall& call) {
  Words words = submission(call.arguments);
  const std::string name = text(call.arguments, "name");
  if (!std::all_of(name.begin(), name.end(),
                   [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; }))
    return Error{ErrorCode::bad_input, "name the candidate", "'" + name + "' is no plain name",
                 "use letters, digits, _ and -"};
  const std::string ending = text(call.arguments, "target") == "cuda" ? ".cu" : ".cpp";
  const std::filesystem::path file = call.scratch / ((name.empty() ? "proposal" : name) + ending);
  RETURN_IF_ERROR(write_file(file, text(call.arguments, "code")));
  add_positional(words, {file.string()});
  return words;
}

Result<Words> submit(const ToolCall& call) {
  Words words = submission(call.arguments);
  add_positional(words, {text(call.arguments, "file")});
  return words;
}

Result<Words> judge(const ToolCall& call, const char* command) {
  ASSIGN_OR_RETURN(const std::string file, source_of(call, "file", "code"));
  Words words{command, "--public-only"};
  add_option(words, "--problem", text(call.arguments, "problem"));
  add_option(words, "--grade", text(call.arguments, "grade"));
  add_options(words, "--case", call.arguments, "cases");
  add_options(words, "--knob", call.arguments, "knobs");
  add_positional(words, {file});
  return words;
}
Result<Words> check(const ToolCall& call) {
  return judge(call, "check");
}
Result<Words> bench(const ToolCall& call) {
  return judge(call, "bench");
}

Result<Words> profile(const ToolCall& call) {
  ASSIGN_OR_RETURN(const std::string file, source_of(call, "file", "code"));
  Words words{"profile"};
  add_option(words, "--problem", text(call.arguments, "problem"));
  add_options(words, "--case", call.arguments, "cases");
  add_options(words, "--knob", call.arguments, "knobs");
  add_positional(words, {file});
  return words;
}

Result<Words> compare(const ToolCall& call) {
  ASSIGN_OR_RETURN(const std::string a, source_of(call, "file_a", "code_a"));
  ASSIGN_OR_RETURN(const std::string b, source_of(call, "file_b", "code_b"));
  Words words{"compare", "--public-only"};
  add_option(words, "--problem", text(call.arguments, "problem"));
  add_options(words, "--knob-a", call.arguments, "knobs_a");
  add_options(words, "--knob-b", call.arguments, "knobs_b");
  add_positional(words, {a, b});
  return words;
}

Result<Words> steer(const ToolCall& call) {
  const std::string action = text(call.arguments, "action");
  const std::string run = text(call.arguments, "run");
  const bool about_family = action == "drop" || action == "protect";
  const char* const needed = action == "say" ? "text" : about_family ? "family" : nullptr;
  if (needed != nullptr && text(call.arguments, needed).empty())
    return Error{ErrorCode::bad_input, action + " in a run", "there is no " + std::string(needed),
                 "give " + std::string(needed)};
  Words words{action == "say" ? "steer" : action};
  if (action == "resume") words.push_back("--only-paused");
  add_positional(words, {run, needed == nullptr ? "" : text(call.arguments, needed)});
  return words;
}

Result<Words> ask(const ToolCall& call) {
  Words words{"ask", "--plain"};  // the client is a model itself
  add_positional(words, {text(call.arguments, "run"), text(call.arguments, "question")});
  return words;
}

ToolArgument required(const char* name, const char* description) {
  return {Kind::text, name, description, true, {}};
}
ToolArgument optional(const char* name, const char* description) {
  return {Kind::text, name, description, false, {}};
}
ToolArgument list(const char* name, const char* description) {
  return {Kind::list, name, description, false, {}};
}

std::vector<McpTool> make_tools() {
  const ToolArgument run = optional("run", "a run's id or its beginning; the latest when left out");
  const ToolArgument idea = required("idea", "one sentence on what should be faster and why");
  const ToolArgument family = optional("family", "the line that it belongs to");
  const ToolArgument file = optional("file", "path of the candidate");
  const ToolArgument code = optional("code", "the candidate's source, instead of a file");
  const ToolArgument target{
      Kind::text, "target", "what the code is for; cpu when left out", false, {"cpu", "cuda"}};
  const ToolArgument problem = required("problem", "a problem's name or folder");
  const ToolArgument knobs = list("knobs", "settings such as kWidth=16");
  const ToolArgument cases = list("cases", "only these cases");
  const ToolArgument grade = optional("grade", "which of the problem's grades judges");
  return {
      {"list_problems",
       "List the problems: name, title, folder, number of cases.",
       {},
       false,
       kQuick_s,
       list_problems,
       false},
      {"read_state",
       "What a run has found so far: state, champions, families, steering, winner.",
       {run},
       false,
       kQuick_s,
       read_state},
      {"propose",
       "Hand an idea with its code to a running campaign, which judges it in its next round.",
       {idea, required("code", "the whole candidate: one source that includes kbeam/candidate.h"),
        family, run, target, optional("name", "a plain name for the file")},
       true,
       kQuick_s,
       propose},
      {"check",
       "Judge whether a candidate is right, on every case. Private cases answer pass or fail.",
       {problem, file, code, target, cases, knobs, grade},
       false,
       kMeasured_s,
       check,
       false},
      {"bench",
       "Check a candidate and time it against the problem's baseline.",
       {problem, file, code, target, knobs, grade},
       false,
       kMeasured_s,
       bench,
       false},
      {"profile",
       "What holds a candidate back: instructions of a .cpp; kernels, plan and floors of a .cu.",
       {file, code, target, optional("problem", "for a .cu outside its problem's folder"), cases,
        knobs},
       false,
       kMeasured_s,
       profile,
       false},
      {"submit",
       "Hand a candidate file to a running campaign.",
       {required("file", "path of the candidate"), idea, family, run},
       true,
       kQuick_s,
       submit},
      {"compare",
       "Time candidate A against candidate B in interleaved pairs.",
       {problem, optional("file_a", "path of A"), optional("code_a", "source of A"),
        optional("file_b", "path of B"), optional("code_b", "source of B"), target,
        list("knobs_a", "settings of A"), list("knobs_b", "settings of B")},
       false,
       kMeasured_s,
       compare,
       false},
      {"steer",
       "Steer a running campaign: say something to its proposers, pause or resume it, drop or "
       "protect a family.",
       {{Kind::text, "action", "what to do", true, {"say", "pause", "resume", "drop", "protect"}},
        run,
        optional("text", "for say: a sentence or two"),
        optional("family", "for drop and protect")},
       true,
       kQuick_s,
       steer},
      {"ask",
       "Ask about a run: tables of facts from its archive with evaluation ids. An unanswerable "
       "question lists those that work.",
       {required("question", "such as: why was family 3 dropped?"), run},
       false,
       kQuick_s,
       ask},
  };
}

Json schema_of(const ToolArgument& argument) {
  Json schema{{"type", argument.kind == Kind::list ? "array" : "string"},
              {"description", argument.description}};
  if (argument.kind == Kind::list) schema["items"] = {{"type", "string"}};
  if (!argument.choices.empty()) schema["enum"] = argument.choices;
  return schema;
}

bool has_type(const ToolArgument& argument, const Json& value) {
  if (argument.kind == Kind::text) return value.is_string();
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const Json& one) { return one.is_string(); });
}

// A NUL would end a word of the command line early.
bool holds_nul(const Json& value) {
  if (value.is_string()) return value.get<std::string>().find('\0') != std::string::npos;
  return std::any_of(value.begin(), value.end(), [](const Json& one) { return holds_nul(one); });
}

}  // namespace

const std::vector<McpTool>& mcp_tools() {
  static const std::vector<McpTool> tools = make_tools();
  return tools;
}

Json describe(const McpTool& tool) {
  Json properties = Json::object();
  Json needed = Json::array();
  for (const ToolArgument& argument : tool.arguments) {
    properties[argument.name] = schema_of(argument);
    if (argument.is_required) needed.push_back(argument.name);
  }
  Json schema{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!needed.empty()) schema["required"] = needed;
  return {{"name", tool.name},
          {"description", tool.description},
          {"inputSchema", std::move(schema)},
          {"annotations",
           {{"readOnlyHint", !tool.changes_state},
            {"destructiveHint", false},
            {"openWorldHint", false}}}};
}

std::string mistake_in(const McpTool& tool, const Json& arguments) {
  std::vector<std::string> names;
  for (const ToolArgument& argument : tool.arguments) {
    names.push_back(argument.name);
    const auto given = arguments.find(argument.name);
    if (given == arguments.end()) {
      if (argument.is_required) return argument.name + " is missing";
      continue;
    }
    if (!has_type(argument, *given))
      return argument.name + " is no " + (argument.kind == Kind::text ? "text" : "list of texts");
    if (holds_nul(*given)) return argument.name + " holds a NUL";
    // Sources go to files, all else to a command line.
    if (argument.name != "code" && given->dump().size() > kMostArgumentBytes)
      return fmt::format("{} has more than {} bytes", argument.name, kMostArgumentBytes);
    if (argument.is_required && given->is_string() && given->get<std::string>().empty())
      return argument.name + " is empty";
    if (!argument.choices.empty() && std::find(argument.choices.begin(), argument.choices.end(),
                                               given->get<std::string>()) == argument.choices.end())
      return fmt::format("{} is none of {}", argument.name, fmt::join(argument.choices, ", "));
  }
  for (const auto& [name, value] : arguments.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const auto close = closest_word(name, names);
    return "there is no argument " + name + (close ? ": did you mean " + *close + "?" : "");
  }
  return {};
}

}  // namespace kbeam::cli
