#include "apps/worker/worker_options.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/spelling.h"

namespace kbeam {
namespace {

using Action = WorkerOptions::Action;

const std::vector<std::string> kKnown{"--device", "--pieces-s", "--plain",     "--wrapper",
                                      "--json",   "--verbose",  "--nodes",     "--probe",
                                      "--clear",  "--help",     "--self-test", "--identify"};

Error mistake(const std::string& happened, const std::string& advice) {
  return {ErrorCode::bad_input, "read the command line of kbeam-worker", happened, advice};
}

template <typename T>
bool read_number(const std::string& text, T& number) {
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  return trouble == std::errc() && rest == text.data() + text.size();
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Result<WorkerOptions> run() {
    while (next_ < arguments_.size()) RETURN_IF_ERROR(take(arguments_[next_++]));
    return finish();
  }

 private:
  Result<void> take(const std::string& word) {
    if (word == "--help" || word == "-h") {
      options_.action = Action::help;
    } else if (word == "--json") {
      options_.json = true;
    } else if (word == "--verbose") {
      options_.verbose = true;
    } else if (word == "--clear") {
      options_.clear = true;
    } else if (word == "--self-test") {
      options_.action = Action::self_test;
    } else if (word == "--probe") {
      options_.action = Action::probe;
    } else if (word == "--identify") {
      options_.action = Action::identify;
    } else if (word == "--plain") {
      options_.action = Action::plain;
    } else if (word == "--nodes") {
      options_.action = Action::nodes;
    } else if (word == "--device" || word == "--pieces-s" || word == "--wrapper") {
      return take_value(word);
    } else if (word.starts_with("-")) {
      const auto close = closest_word(word, kKnown);
      return mistake("there is no option " + word,
                     close ? "did you mean " + *close + "?" : "see kbeam-worker --help");
    } else {
      options_.folders.emplace_back(word);
    }
    return {};
  }

  Result<void> take_value(const std::string& option) {
    if (next_ == arguments_.size()) return mistake(option + " lacks its value", "see --help");
    const std::string& value = arguments_[next_++];
    if (option == "--device") {
      if (!read_number(value, options_.device) || options_.device < 0)
        return mistake("--device '" + value + "' is no device number", "write for instance 0");
    } else if (option == "--pieces-s") {
      if (!read_number(value, options_.pieces_s) || !(options_.pieces_s > 0))
        return mistake("--pieces-s '" + value + "' is no number of seconds",
                       "write for instance 540");
    } else {
      std::istringstream words(value);
      for (std::string word; words >> word;) options_.wrapper.push_back(word);
    }
    return {};
  }

  Result<WorkerOptions> finish() {
    const bool takes_one = options_.action == Action::plain || options_.action == Action::nodes;
    const bool takes_folders = options_.action == Action::run || takes_one;
    if (takes_folders && options_.folders.empty())
      return mistake("no task folder is named", "kbeam bundle writes them");
    if (!takes_folders && options_.action != Action::help && !options_.folders.empty())
      return mistake("this takes no folder", "see kbeam-worker --help");
    if (takes_one && options_.folders.size() != 1)
      return mistake("--plain and --nodes take one folder", "run it once for each");
    if (!options_.wrapper.empty() && options_.action != Action::plain)
      return mistake("--wrapper goes with --plain", "nothing that counts is timed under a tool");
    if (options_.clear && options_.action != Action::probe)
      return mistake("--clear goes with --probe", "a quarantine is lifted by a good probe only");
    return options_;
  }

  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  WorkerOptions options_;
};

}  // namespace

Result<WorkerOptions> parse_worker_options(const std::vector<std::string>& arguments) {
  return Parser(arguments).run();
}

std::string worker_help() {
  return R"(kbeam-worker: evaluates task folders on an NVIDIA GPU; needs the driver, no toolkit

  kbeam-worker FOLDER... [--device N] [--pieces-s S]   evaluate; the result goes into each folder
  kbeam-worker --plain FOLDER [--wrapper COMMAND]      check cases once, outputs hashed, nothing timed
  kbeam-worker --nodes FOLDER                          time every node of the plans, as JSON for kbeam profile
  kbeam-worker --probe [--clear]                       ask the device a known question
  kbeam-worker --self-test                             a tour of everything that the worker does

  --device N      which GPU (default 0)
  --pieces-s S    stop in good order after about S seconds; the same command goes on from there
  --wrapper CMD   started around the GPU's process, such as "compute-sanitizer --tool memcheck"
  --clear         a probe that passes lifts the quarantine of the device
  --json          results as JSON, one line a folder
  --verbose       progress on stderr even when that is no terminal

  Example:  kbeam bundle --file mine.cu --problem batched_qr --out tasks
            kbeam-worker tasks/* --pieces-s 540
            kbeam collect tasks

  Exit codes: 0 done; 1 a probe, self test or plain run failed; 2 a mistake in the command line or
  a folder; 3 the machine or the device cannot do it; 4 time was up: run the same command again
)";
}

}  // namespace kbeam
