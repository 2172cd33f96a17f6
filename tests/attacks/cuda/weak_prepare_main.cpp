// Builds and plans each named attack with its defence off, for prepare_main.cpp, and prints {name,
// task, verdict, reason}, a line each: what is left to do on a GPU is a task folder.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "attacks/cuda/manifest.h"
#include "attacks/cuda/workshop.h"
#include "base/defence.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

void run(const Manifest& manifest, const fs::path& folder, const fs::path& tasks, Workshop& shop) {
  for (const Attack& attack : manifest.attacks) {
    const std::optional<Defence> defence = parse_defence(attack.defences.front());
    if (!defence) continue;
    switch_off(*defence);
    Job job = job_of(attack, folder);
    job.name += "-without";
    const auto trial = shop.prepare(job, tasks);
    switch_off(std::nullopt);
    const Finding found =
        trial.ok() ? trial->found : Finding{"engine_failed", trial.error().text()};
    const Json line{{"name", attack.name},
                    {"task", trial.ok() ? trial->task : ""},
                    {"verdict", found.verdict},
                    {"reason", found.reason}};
    fmt::print("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
}

int run(int count, char** words) {
  if (count < 5) {
    fmt::print(stderr, "usage: {} SOURCE_TREE BUILD_FOLDER FOLDER NAME...\n", words[0]);
    return EXIT_FAILURE;
  }
  const std::filesystem::path source = words[1];
  const std::filesystem::path build = words[2];
  auto manifest = load_manifest(source / "tests/attacks/cuda");
  // What a weakened build admits goes to a cache of its own.
  const auto shop =
      Workshop::open({source, build / "kbeam-weak-planner", build / "tests/attack_cache/careless"});
  if (!manifest.ok() || !shop.ok()) {
    fmt::print(stderr, "{}\n", (manifest.ok() ? shop.error() : manifest.error()).text());
    return EXIT_FAILURE;
  }
  manifest->keep_only({words + 4, words + count});
  run(*manifest, source / "tests/attacks/cuda", std::filesystem::path(words[3]) / kTaskSubfolder,
      **shop);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace kbeam::device_attacks

int main(int count, char** words) {
  return kbeam::device_attacks::run(count, words);
}
