// Everything of the device corpus that needs no GPU: builds and plans every candidate, settles what
// is refused there, and writes a folder that kbeam-cuda-attacks runs on a machine with a GPU.
// Compiled twice: linked to the engine that ships, and to the weakened one, which the first asks
// what becomes of an attack at the planner when its defence is off.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "attacks/cuda/corpus.h"
#include "attacks/cuda/manifest.h"
#include "attacks/cuda/workshop.h"
#include "base/files.h"
#include "base/process.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

constexpr char kSwitch[] = "KBEAM_TEST_WITHOUT";  // only the weakened programs hold this
constexpr double kWeakTimeout_s = 900;

struct Programs {
  fs::path source;
  fs::path build;   // where kbeam-planner and the others lie
  fs::path folder;  // what is made
  std::vector<std::string> names;
};

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

class Preparation {
 public:
  Preparation(Programs programs, Manifest manifest, Workshop& shop)
      : programs_(std::move(programs)),
        corpus_folder_(programs_.source / "tests/attacks/cuda"),
        tasks_(programs_.folder / kTaskSubfolder),
        manifest_(std::move(manifest)),
        shop_(shop) {}

  int run() {
    find_switches();
    build_all();
    for (const Honest& one : manifest_.honest) prepare_honest(job_of(one, corpus_folder_));
    for (const Attack& attack : manifest_.attacks) prepare(attack);
    ask_the_weakened();
    settle();
    if (const auto written = write_corpus(corpus_, programs_.folder); !written.ok())
      complain(written.error().text());
    return report();
  }

 private:
  void complain(const std::string& what) {
    fmt::print("FAILED: {}\n", what);
    ++failures_;
  }

  // The switch must not ship.
  void find_switches() {
    const auto holds = [&](const char* program) {
      const auto bytes = read_file(programs_.build / program);
      return bytes.ok() ? contains(*bytes, kSwitch) : false;
    };
    for (const char* program : {"kbeam-worker", "kbeam-planner"})
      if (!fs::exists(programs_.build / program) || holds(program))
        complain(fmt::format("{} is missing, or has the switch for defences in it", program));
    for (const char* program : {"kbeam-weak-worker", "kbeam-weak-planner"})
      if (!holds(program)) complain(fmt::format("{} has no switch for defences", program));
  }

  // The builds take most of the time, so they use every processor; the rest finds them in the
  // cache.
  void build_all() {
    std::set<fs::path> files;
    for (const Attack& attack : manifest_.attacks)
      for (const Job& job : {job_of(attack, corpus_folder_), twin_of(attack, corpus_folder_)})
        files.insert(job.file);
    for (const Honest& one : manifest_.honest) files.insert(job_of(one, corpus_folder_).file);
    const std::vector<fs::path> list(files.begin(), files.end());
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([&] {
        for (std::size_t at = 0; (at = next++) < list.size();)
          if (const auto built = shop_.build(list[at]); !built.ok()) std::abort();
      });
    for (std::thread& thread : threads) thread.join();
  }

  const Mutant* find_mutant(const Attack& attack) const {
    return attack.defences.size() == 1 ? manifest_.find_mutant(attack.defences.front()) : nullptr;
  }

  Trial made(const Job& job) {
    auto trial = shop_.prepare(job, tasks_);
    if (trial.ok()) return *std::move(trial);
    return {"", {"engine_failed", trial.error().text()}};
  }

  void prepare(const Attack& attack) {
    PreparedAttack prepared{.name = attack.name,
                            .text = attack.text,
                            .expect = attack.expect,
                            .says = attack.says,
                            .defences = attack.defences,
                            .unprovable = attack.unprovable,
                            .success = attack.success,
                            .is_gain = attack.stage == How::gain,
                            .by_best = attack.by_best,
                            .hangs = attack.defences == std::vector<std::string>{"call_timeout"},
                            .trial = {},
                            .without = {}};
    Job job = job_of(attack, corpus_folder_);
    prepared.trial = made(job);
    if (const Mutant* const mutant = find_mutant(attack)) {
      job.name += "-without";
      job.mutant = mutant;
      prepared.without = made(job);
    } else if (!prepared.trial.task.empty() && !attack.defences.empty()) {
      prepared.without = prepared.trial;  // the same task, in the weak worker
      prepared.needs_weak_worker = true;
    }
    corpus_.attacks.push_back(std::move(prepared));
    prepare_honest(twin_of(attack, corpus_folder_));
  }

  void prepare_honest(const Job& job) {
    if (!honest_.insert(job.name).second) return;
    corpus_.honest.push_back({job.name, made(job)});
  }

  // Attacks that are settled here, at the build or at the planner.
  void ask_the_weakened() {
    std::vector<std::string> command = {(programs_.build / "kbeam-weak-prepare").string(),
                                        programs_.source.string(), programs_.build.string(),
                                        programs_.folder.string()};
    std::map<std::string, PreparedAttack*> asked;
    for (PreparedAttack& attack : corpus_.attacks)
      if (attack.trial.task.empty() && !attack.defences.empty()) {
        asked[attack.name] = &attack;
        command.push_back(attack.name);
      }
    if (asked.empty()) return;
    std::vector<std::string> environment = {"PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
                                            "HOME=" + programs_.folder.string()};
    const auto outcome = run_process({.command = std::move(command),
                                      .environment = std::move(environment),
                                      .timeout_s = kWeakTimeout_s});
    if (!outcome.ok() || outcome->exit_code != 0)
      return complain("kbeam-weak-prepare ended early: " +
                      (outcome.ok() ? outcome->output : outcome.error().text()));
    for (std::size_t at = 0; at < outcome->output.size();) {
      const std::size_t end = std::min(outcome->output.find('\n', at), outcome->output.size());
      const Json line = Json::parse(outcome->output.substr(at, end - at), nullptr, false);
      at = end + 1;
      const auto found = asked.find(line.is_object() ? line.value("name", "") : "");
      if (found != asked.end())
        found->second->without = {line.value("task", ""),
                                  {line.value("verdict", ""), line.value("reason", "")}};
    }
  }

  // What is known already must be as expected.
  void settle() {
    for (const PreparedAttack& attack : corpus_.attacks) {
      const Finding& found = attack.trial.found;
      if (!attack.trial.task.empty()) continue;
      ++settled_;
      if (std::find(attack.expect.begin(), attack.expect.end(), found.verdict) ==
              attack.expect.end() ||
          !contains(found.reason, attack.says))
        complain(fmt::format("{}: {} ({}); expected {} with the words \"{}\"", attack.name,
                             found.verdict, found.reason, fmt::join(attack.expect, " or "),
                             attack.says));
      if (!attack.defences.empty() && attack.without.task.empty() &&
          attack.without.found.verdict != attack.success)
        complain(fmt::format("{} without {}: {} ({}); it should succeed", attack.name,
                             fmt::join(attack.defences, " and "), attack.without.found.verdict,
                             attack.without.found.reason));
    }
    for (const PreparedHonest& one : corpus_.honest)
      if (one.trial.task.empty() && one.trial.found.verdict != "accepted")
        complain(fmt::format("{}: {} ({}); it is honest", one.name, one.trial.found.verdict,
                             one.trial.found.reason));
  }

  int report() const {
    fmt::print(
        "{} attacks, {} of them settled without a GPU; {} honest candidates and twins; the rest "
        "lies in {}\n",
        corpus_.attacks.size(), settled_, corpus_.honest.size(), tasks_.string());
    return failures_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

  Programs programs_;
  fs::path corpus_folder_;
  fs::path tasks_;
  Manifest manifest_;
  Workshop& shop_;
  Corpus corpus_;
  std::set<std::string> honest_;
  int settled_ = 0;
  int failures_ = 0;
};

int run(int count, char** words) {
  namespace fs = std::filesystem;
  if (count < 4) {
    fmt::print(stderr, "usage: {} SOURCE_TREE BUILD_FOLDER FOLDER_TO_MAKE [NAME]...\n", words[0]);
    return EXIT_FAILURE;
  }
  const Programs programs{words[1], words[2], words[3], {words + 4, words + count}};
  std::error_code trouble;
  fs::remove_all(programs.folder / kTaskSubfolder, trouble);
  fs::create_directories(programs.folder / kTaskSubfolder, trouble);
  auto manifest = load_manifest(programs.source / "tests/attacks/cuda");
  const auto shop = Workshop::open(
      {programs.source, programs.build / "kbeam-planner", programs.build / "tests/attack_cache"});
  if (!manifest.ok() || !shop.ok()) {
    fmt::print(stderr, "{}\n", (manifest.ok() ? shop.error() : manifest.error()).text());
    return EXIT_FAILURE;
  }
  manifest->keep_only(programs.names);
  return Preparation(programs, *std::move(manifest), **shop).run();
}

}  // namespace
}  // namespace kbeam::device_attacks

int main(int count, char** words) {
  return kbeam::device_attacks::run(count, words);
}
