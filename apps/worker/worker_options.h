// The command line of kbeam-worker as data. Does nothing of what it says.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

struct WorkerOptions {
  enum class Action {
    run,        // FOLDER...
    plain,      // --plain FOLDER
    nodes,      // --nodes FOLDER
    self_test,  // --self-test
    probe,      // --probe, --probe --clear
    identify,   // --identify: what run asks of a child process
    help
  } action = Action::run;
  std::vector<std::filesystem::path> folders;
  int device = 0;
  double pieces_s = std::numeric_limits<double>::infinity();
  std::vector<std::string> wrapper;  // words
  bool clear = false;
  bool json = false;
  bool verbose = false;
};

Result<WorkerOptions> parse_worker_options(const std::vector<std::string>& arguments);
std::string worker_help();

}  // namespace kbeam
