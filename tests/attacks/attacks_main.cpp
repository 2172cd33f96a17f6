// Runs the corpus: every attack must be rejected for the reason that attacks.toml gives, its twin
// and every honest candidate accepted, and with just the named defence off the attack must succeed.
// Linked to the engine that ships; weak_main.cpp judges the last point. Writes attacks.json into
// the build folder.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "attacks/bench.h"
#include "attacks/manifest.h"
#include "base/files.h"
#include "base/process.h"
#include "target/cpu/runner.h"

namespace kbeam::attacks {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kSwitch[] = "KBEAM_TEST_WITHOUT";  // only the weakened programs hold this
constexpr double kWeakTimeout_s = 600;

struct Programs {
  fs::path source;  // the tree
  fs::path build;   // where kbeam and the others lie
  fs::path cache;
  std::vector<std::string> names;  // of the entries to run; none: all
};

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

bool is_one_of(const std::string& verdict, const std::vector<std::string>& verdicts) {
  return std::find(verdicts.begin(), verdicts.end(), verdict) != verdicts.end();
}

// One line for a terminal.
std::string short_form(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t kMost = 160;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// What weak_main.cpp prints.
std::map<std::string, Finding> parse_findings(const std::string& text) {
  std::map<std::string, Finding> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json finding = Json::parse(line, nullptr, false);
    if (finding.is_object())
      found[finding.value("name", "")] = {finding.value("verdict", ""),
                                          finding.value("reason", "")};
  }
  return found;
}

class Corpus {
 public:
  Corpus(Programs programs, Manifest manifest, Bench& bench)
      : programs_(std::move(programs)),
        folder_(programs_.source / "tests/attacks"),
        manifest_(std::move(manifest)),
        bench_(bench) {}

  int run() {
    build_all();
    find_switches();
    for (const Attack& attack : manifest_.attacks) attack_once(attack);
    for (const Honest& one : manifest_.honest)
      judge_honest(one.name,
                   {.file = folder_ / "honest" / (one.name + ".cpp"), .stage = one.stage});
    judge_mutants();
    judge_weakened();
    return report();
  }

 private:
  struct Row {
    const Attack* attack;
    Finding found;
    Finding without;  // its defence
    bool rejected = false;
    bool succeeded = false;  // without its defence
  };

  // The builds take most of the time, so they use every processor; the judge then finds them in the
  // cache.
  void build_all() {
    std::vector<Job> jobs;
    for (const Attack& attack : manifest_.attacks) {
      if (attack.limits == Limits{}) jobs.push_back(job_of(attack, folder_));
      jobs.push_back(twin_of(attack, folder_));
    }
    for (const Honest& one : manifest_.honest)
      jobs.push_back({.file = folder_ / "honest" / (one.name + ".cpp")});
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([&] {
        for (std::size_t job = 0; (job = next++) < jobs.size();)
          [[maybe_unused]] const auto told_when_judged = bench_.build(jobs[job]);
      });
    for (std::thread& thread : threads) thread.join();
  }

  void complain(const std::string& what) {
    fmt::print("FAILED: {}\n", what);
    ++failures_;
  }

  // The switch must not ship.
  void find_switches() {
    for (const char* program : {"kbeam", "kbeam-runner"}) {
      const auto bytes = read_file(programs_.build / program);
      if (!bytes.ok() || contains(*bytes, kSwitch))
        complain(fmt::format("{} cannot be read, or has the switch for defences in it", program));
    }
    const auto weak = read_file(programs_.build / "kbeam-weak-runner");
    if (!weak.ok() || !contains(*weak, kSwitch))
      complain("kbeam-weak-runner has no switch: the search for it finds nothing");
  }

  // Where the kernel lacks what a defence is made of, its attacks say nothing.
  bool can_be_told(const Attack& attack) const {
    const bool needs_sandbox = attack.defence == "process_sandbox" ||
                               attack.defence == "system_call_filter" ||
                               attack.defence == "compiler_sandbox";
    return !needs_sandbox || best_sandbox() >= SandboxLevel::landlock_seccomp;
  }

  void attack_once(const Attack& attack) {
    if (!can_be_told(attack)) {
      ++skipped_;
      return;
    }
    Row row{.attack = &attack, .found = bench_.judge(job_of(attack, folder_)), .without = {}};
    row.rejected =
        is_one_of(row.found.verdict, attack.expect) && contains(row.found.reason, attack.says);
    if (!row.rejected)
      complain(fmt::format("{}: {} ({}); expected {} with the words \"{}\"", attack.name,
                           row.found.verdict, short_form(row.found.reason),
                           fmt::join(attack.expect, " or "), attack.says));
    rows_.push_back(std::move(row));
    judge_honest(attack.name + ", its twin", twin_of(attack, folder_));
  }

  void judge_honest(const std::string& name, const Job& job) {
    const std::string id = job.file.filename().string() + " " + describe_knobs(job.knobs);
    if (!judged_honest_.insert(id + std::to_string(static_cast<int>(job.stage))).second) return;
    ++honest_;
    const Finding found = bench_.judge(job);
    if (found.verdict == "accepted")
      ++accepted_;
    else
      complain(
          fmt::format("{}: {} ({}); it is honest", name, found.verdict, short_form(found.reason)));
  }

  // A mutant of problem.cpp: every attack that names it must get through.
  void judge_mutants() {
    for (const Mutant& mutant : manifest_.mutants) {
      if (mutant.find.empty()) continue;
      const auto library = bench_.build_mutant(mutant);
      if (!library.ok()) {
        complain(library.error().text());
        continue;
      }
      for (Row& row : rows_)
        if (row.attack->defence == mutant.name)
          take(row, bench_.judge(job_of(*row.attack, folder_), library->get()));
    }
  }

  void take(Row& row, Finding without) {
    row.succeeded = without.verdict == row.attack->success &&
                    contains(without.reason, row.attack->success_says);
    row.without = std::move(without);
    if (!row.succeeded)
      complain(fmt::format("{} without {}: {} ({}); it should succeed", row.attack->name,
                           row.attack->defence, row.without.verdict,
                           short_form(row.without.reason)));
  }

  void judge_weakened() {
    std::vector<std::string> command = {(programs_.build / "kbeam-weak-attacks").string(),
                                        programs_.source.string(), programs_.build.string(),
                                        programs_.cache.string()};
    command.insert(command.end(), programs_.names.begin(), programs_.names.end());
    const auto outcome = run_process(
        {.command = std::move(command),
         .environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + programs_.cache.string()},
         .timeout_s = kWeakTimeout_s});
    if (!outcome.ok() || outcome->exit_code != 0)
      return complain("kbeam-weak-attacks ended early: " +
                      (outcome.ok() ? short_form(outcome->output) : outcome.error().text()));
    std::map<std::string, Finding> found = parse_findings(outcome->output);
    for (Row& row : rows_) {
      const Mutant* const mutant = manifest_.find_mutant(row.attack->defence);
      const bool is_of_the_problem = mutant != nullptr && !mutant->find.empty();
      if (!is_of_the_problem) take(row, found[row.attack->name]);
    }
  }

  // A mutant is caught when an attack that is rejected without it gets through with it.
  int count_caught_mutants() const {
    int caught = 0;
    for (const Mutant& mutant : manifest_.mutants)
      caught += std::any_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return row.attack->defence == mutant.name && row.rejected && row.succeeded;
      });
    return caught;
  }

  int report() {
    Json list = Json::array();
    int rejected = 0;
    std::set<std::string> defences;
    for (const Row& row : rows_) {
      // Rejected as it was meant to be, and accepted when nothing but this is missing: this is what
      // fired.
      const bool fired = row.rejected && row.succeeded;
      rejected += fired ? 1 : 0;
      defences.insert(row.attack->defence);
      list.push_back({{"name", row.attack->name},
                      {"text", row.attack->text},
                      {"expected", row.attack->expect},
                      {"verdict", row.found.verdict},
                      {"reason", row.found.reason},
                      {"fired", fired ? row.attack->defence : "unknown"},
                      {"without", row.without.verdict}});
    }
    const auto written =
        write_file(programs_.build / "attacks.json",
                   list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    if (!written.ok()) complain(written.error().text());
    const int mutants = static_cast<int>(manifest_.mutants.size());
    const int caught = count_caught_mutants();
    if (caught != mutants && programs_.names.empty())
      complain("a mutant of the checker is not caught");
    if (skipped_ > 0)
      fmt::print("skipped: {} attacks, because this machine lacks Landlock or seccomp\n", skipped_);
    fmt::print(
        "defences: {}, each of them the one that its attacks fail at; mutants of the checker: {} "
        "of {} caught\n",
        defences.size(), caught, mutants);
    fmt::print("attacks: {} of {} rejected, honest: {} of {} accepted\n", rejected, rows_.size(),
               accepted_, honest_);
    return failures_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

  Programs programs_;
  fs::path folder_;
  Manifest manifest_;
  Bench& bench_;
  std::vector<Row> rows_;
  std::set<std::string> judged_honest_;
  int honest_ = 0;
  int accepted_ = 0;
  int skipped_ = 0;
  int failures_ = 0;
};

int run(const Programs& programs, const Manifest& manifest) {
  auto bench = Bench::open({programs.source, programs.build / "kbeam-runner", programs.cache});
  if (!bench.ok()) {
    fmt::print(stderr, "{}\n", bench.error().text());
    return EXIT_FAILURE;
  }
  return Corpus(programs, manifest, **bench).run();
}

int run_words(int count, char** words) {
  if (count < 4) {
    fmt::print(stderr, "usage: {} SOURCE_TREE BUILD_FOLDER CACHE_FOLDER [NAME]...\n", words[0]);
    return EXIT_FAILURE;
  }
  const Programs programs{words[1], words[2], words[3], {words + 4, words + count}};
  auto manifest = load_manifest(programs.source / "tests/attacks");
  if (!manifest.ok()) {
    fmt::print(stderr, "{}\n", manifest.error().text());
    return EXIT_FAILURE;
  }
  manifest->keep_only(programs.names);
  return run(programs, *manifest);
}

}  // namespace
}  // namespace kbeam::attacks

int main(int count, char** words) {
  return kbeam::attacks::run_words(count, words);
}
