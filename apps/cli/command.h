// A command as data: help, parsing, spelling suggestions and dispatch all read the one table in
// commands.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kbeam::cli {

// What every command can end with. Scripts may rely on these numbers.
enum ExitCode {
  kDone = 0,
  kNo = 1,  // it worked, and the answer is no: rejected, not faster, no winner, something missing
  kBadInput = 2,    // a mistake in the command line or in a file
  kCannotWork = 3,  // the machine or kbeam itself: compiler, disk, lock
  kInterrupted = 130
};

struct OptionSpec {
  std::string name;   // "--budget"; without dashes it is a positional argument
  std::string value;  // "TIME"; empty for a switch
  std::string help;
  std::string fallback;  // shown in the help; empty: none
  enum class Kind { optional, required, repeated } kind = Kind::optional;
};

class Options {
 public:
  std::map<std::string, std::vector<std::string>> values;
  bool has(const std::string& name) const { return values.contains(name); }
  // The value, or the fallback of the table; empty when there is neither.
  std::string get(const std::string& name) const;
  std::vector<std::string> all(const std::string& name) const;
  std::map<std::string, std::string> fallbacks;
  bool json() const { return has("--json"); }
};

struct Command {
  std::string name;
  std::string summary;
  std::string example;  // a line that works as it stands
  std::vector<OptionSpec> options;
  std::string no_means;  // what exit code 1 says here; empty when it cannot happen
  int (*run)(const Options& options);
};

const std::vector<Command>& all_commands();

// Parses, answers --help and --version, suggests spellings, and runs the command.
int dispatch(int argc, char** argv);

}  // namespace kbeam::cli
