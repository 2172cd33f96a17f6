#include <fmt/core.h>

#include <csignal>
#include <exception>

#include "apps/cli/command.h"

int main(int argc, char** argv) {
  // A limit on file sizes is then an error like a full disk, with words, and not a sudden end.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return kbeam::cli::dispatch(argc, argv);
  } catch (const std::exception& trouble) {
    // Nothing in the engine throws across a module; this is the last fence (out of memory, a
    // library's throw).
    fmt::print(stderr, "kbeam: unexpected trouble: {}\n", trouble.what());
    return kbeam::cli::kCannotWork;
  }
}
