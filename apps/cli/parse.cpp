// The command line. The only file that includes CLI11, which is slow to compile.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/cli/command.h"
#include "base/spelling.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

std::string exit_code_text(const Command& command) {
  std::string text = "Exit codes: 0 done";
  if (!command.no_means.empty()) text += "; 1 " + command.no_means;
  return text + "; 2 bad input; 3 cannot work here; 130 interrupted";
}

std::vector<std::string> known_names(const Command* command) {
  std::vector<std::string> names;
  if (command == nullptr) {
    for (const Command& one : all_commands()) names.push_back(one.name);
  } else {
    names = {"--json", "--help"};
    for (const OptionSpec& option : command->options) names.push_back(option.name);
  }
  return names;
}

std::string suggestion(const std::string& word, const Command* command) {
  const std::vector<std::string> known = known_names(command);
  if (const auto close = word.empty() ? std::nullopt : closest_word(word, known))
    return fmt::format("did you mean '{}'?", *close);
  return fmt::format("see `kbeam{} --help`", command == nullptr ? "" : " " + command->name);
}

// A script that asked for JSON gets it whatever is wrong with its command line.
int refuse(bool as_json, const Command* command, const std::string& what,
           const std::vector<std::string>& advice) {
  const std::string attempted = "kbeam" + (command == nullptr ? "" : " " + command->name);
  if (as_json)
    fmt::print("{}\n", json_text(Json{{"error",
                                       {{"attempted", attempted},
                                        {"happened", what},
                                        {"advice", fmt::format("{}", fmt::join(advice, "; "))}}}}));
  fmt::print(stderr, "{}: {}\n", attempted, what);
  for (const std::string& line : advice) fmt::print(stderr, "  {}\n", line);
  return kBadInput;
}

void add_options(CLI::App& app, const Command& command,
                 std::map<std::string, std::vector<std::string>>& values) {
  for (const OptionSpec& option : command.options) {
    std::string help = option.help;
    if (!option.fallback.empty()) help += " [" + option.fallback + "]";
    if (option.value.empty() && option.name.starts_with("--")) {
      app.add_flag_callback(
          option.name, [&values, name = option.name] { values[name] = {"true"}; }, help);
      continue;
    }
    CLI::Option* added = app.add_option_function<std::vector<std::string>>(
        option.name,
        [&values, name = option.name](const std::vector<std::string>& given) {
          values[name] = given;
        },
        help);
    added->type_name(option.value)->allow_extra_args(false);
    added->expected(
        option.kind == OptionSpec::Kind::repeated && !option.name.starts_with("--") ? -1 : 1);
    if (option.kind == OptionSpec::Kind::repeated) added->take_all();
    if (option.kind == OptionSpec::Kind::required) added->required();
  }
  app.add_flag_callback(
      "--json", [&values] { values["--json"] = {"true"}; }, "print the result as JSON");
}

}  // namespace

std::string Options::get(const std::string& name) const {
  if (const auto found = values.find(name); found != values.end() && !found->second.empty())
    return found->second.back();
  const auto fallback = fallbacks.find(name);
  return fallback == fallbacks.end() ? std::string() : fallback->second;
}

std::vector<std::string> Options::all(const std::string& name) const {
  const auto found = values.find(name);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

int dispatch(int argc, char** argv) {
  CLI::App app{"kbeam finds faster compute kernels and proves that they are faster and right."};
  app.name("kbeam");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("kbeam ") + KBEAM_VERSION);
  app.footer(
      "Example: kbeam run batched_qr --budget 180s\n`kbeam COMMAND --help` shows an example of "
      "each.");
  std::map<const CLI::App*, const Command*> by_app;
  std::map<std::string, std::vector<std::string>> values;
  for (const Command& command : all_commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer("Example: " + command.example + "\n" + exit_code_text(command));
    add_options(*sub, command, values);
    by_app[sub] = &command;
  }
  const bool as_json = std::any_of(
      argv, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
  // CLI11 would take an unknown command for a stray argument: answer it here, with a suggestion.
  if (argc > 1 && argv[1][0] != '-') {
    const std::string word = argv[1];
    const auto& commands = all_commands();
    if (std::none_of(commands.begin(), commands.end(),
                     [&](const Command& c) { return c.name == word; })) {
      return refuse(as_json, nullptr, fmt::format("there is no command '{}'", word),
                    {suggestion(word, nullptr)});
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    fmt::print("{}\n", chosen.empty() ? app.help() : chosen.front()->help("kbeam"));
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kDone;
  } catch (const CLI::ParseError& mistake) {
    const auto chosen = app.get_subcommands();
    const Command* const command = chosen.empty() ? nullptr : by_app.at(chosen.front());
    if (command == nullptr && argc == 1) {
      fmt::print("{}\n", app.help());
      return kBadInput;
    }
    std::vector<std::string> advice;
    for (const std::string& word : app.remaining(/*recurse=*/true))
      if (word.starts_with("-")) advice.push_back(suggestion(word, command));
    if (advice.empty() && command != nullptr)
      advice.push_back("write for instance: " + command->example);
    if (advice.empty() || advice.front().starts_with("write"))
      advice.push_back(suggestion({}, command));
    return refuse(as_json, command, mistake.what(), advice);
  }
  const Command& command = *by_app.at(app.get_subcommands().front());
  Options options;
  options.values = std::move(values);
  for (const OptionSpec& option : command.options)
    if (!option.fallback.empty()) options.fallbacks[option.name] = option.fallback;
  return command.run(options);
}

}  // namespace kbeam::cli
