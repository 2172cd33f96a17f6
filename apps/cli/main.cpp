#include <fmt/core.h>

#include <exception>

#include "apps/cli/command.h"

int main(int argc, char** argv) {
  try {
    return kbeam::cli::dispatch(argc, argv);
  } catch (const std::exception& trouble) {
    // Nothing in the engine throws across a module; this is the last fence (out of memory, a
    // library's throw).
    fmt::print(stderr, "kbeam: unexpected trouble: {}\n", trouble.what());
    return kbeam::cli::kCannotWork;
  }
}
