// Judges each attack with its defence off, for attacks_main.cpp, and prints {name, verdict,
// reason}, a line each.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "attacks/bench.h"
#include "attacks/manifest.h"
#include "base/defence.h"

namespace kbeam::attacks {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool is_of_the_build(Defence defence) {
  return defence <= Defence::build_limits;
}

// `careless`: what a weakened build admits goes to a cache of its own.
void run(const Manifest& manifest, const fs::path& folder, Bench& plain, Bench& careless) {
  for (const Attack& attack : manifest.attacks) {
    const std::optional<Defence> defence = parse_defence(attack.defence);
    if (!defence) continue;
    switch_off(*defence);
    Bench& bench = is_of_the_build(*defence) ? careless : plain;
    const Finding finding = bench.judge(job_of(attack, folder));
    switch_off(std::nullopt);
    const Json line{
        {"name", attack.name}, {"verdict", finding.verdict}, {"reason", finding.reason}};
    fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
    std::fflush(stdout);  // a reader sees how far it came
  }
}

int run_words(int count, char** words) {
  if (count < 4) {
    fmt::print(stderr, "usage: {} SOURCE_TREE BUILD_FOLDER CACHE_FOLDER [NAME]...\n", words[0]);
    return EXIT_FAILURE;
  }
  const std::filesystem::path source = words[1];
  const std::filesystem::path runner = std::filesystem::path(words[2]) / "kbeam-weak-runner";
  const std::filesystem::path cache = words[3];
  auto manifest = load_manifest(source / "tests/attacks");
  const auto plain = Bench::open({source, runner, cache});
  const auto careless = Bench::open({source, runner, cache / "careless"});
  if (!manifest.ok() || !plain.ok() || !careless.ok()) {
    const auto& error = !manifest.ok() ? manifest.error()
                        : !plain.ok()  ? plain.error()
                                       : careless.error();
    fmt::print(stderr, "{}\n", error.text());
    return EXIT_FAILURE;
  }
  manifest->keep_only({words + 4, words + count});
  run(*manifest, source / "tests/attacks", **plain, **careless);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace kbeam::attacks

int main(int count, char** words) {
  return kbeam::attacks::run_words(count, words);
}
