// The half of the device corpus that needs a GPU: runs what was prepared with the worker that ships
// and, for each attack, with a worker in which just its defence is off; writes attacks.json. Needs
// the C library and the driver, like the worker itself.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "attacks/cuda/corpus.h"
#include "base/files.h"
#include "base/process.h"
#include "execute/evaluation_task.h"

namespace kbeam::device_attacks {
namespace {

namespace fs = std::filesystem;

constexpr double kBatchTimeout_s = 500;
constexpr double kHangPatience_s = 6;  // for one whose defence is the time limit
constexpr double kLeastGain = 1.3;     // a speedup from here on is one
constexpr char kNoAnswer[] = "no_answer";

struct Place {
  fs::path prepared;
  fs::path worker;
  fs::path weak_worker;
  fs::path work;     // copies of the task folders
  fs::path results;  // attacks.json
};

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

std::string short_form(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t kMost = 160;
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

// The environment of a worker: ours, and which defence is off.
std::vector<std::string> environment_without(const std::string& defence) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("KBEAM_TEST_WITHOUT="))
      environment.emplace_back(*entry);
  if (!defence.empty()) environment.push_back("KBEAM_TEST_WITHOUT=" + defence);
  return environment;
}

std::string all_but(const std::string& one, std::vector<std::string> defences) {
  std::erase(defences, one);
  return fmt::format("{}", fmt::join(defences, ","));
}

// Where the copies lie that are run with this one of several defences on.
std::string alone(const std::string& defence) {
  return "alone-" + defence;
}

// What of the times decides whether there is a gain.
enum class Gain { none, of_the_median, of_the_best };

Gain gain_of(const PreparedAttack& attack) {
  if (!attack.is_gain) return Gain::none;
  return attack.by_best ? Gain::of_the_best : Gain::of_the_median;
}

// Of candidate and reference.
std::pair<double, double> times_of(const Measurement& measurement, bool by_best) {
  const PairedSamples& samples = measurement.samples;
  if (!by_best || samples.candidate_ns.empty())
    return {measurement.summary.candidate_ns, measurement.summary.reference_ns};
  return {*std::ranges::min_element(samples.candidate_ns),
          *std::ranges::min_element(samples.reference_ns)};
}

// Task folders that one worker process runs one after the other.
struct Batch {
  fs::path worker;
  std::string without;  // a defence
  double timeout_s = kBatchTimeout_s;
  std::vector<fs::path> folders;
};

class Run {
 public:
  Run(Place place, Corpus corpus) : place_(std::move(place)), corpus_(std::move(corpus)) {}

  int go() {
    const auto begin = std::chrono::steady_clock::now();
    run_all();
    judge();
    write_results();
    const double wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print("{:.1f} s\n", wall_s);
    fmt::print("device attacks: {} of {} rejected, honest: {} of {} accepted, proofs: {} of {}\n",
               rejected_, corpus_.attacks.size(), accepted_, corpus_.honest.size(), proved_,
               to_prove_);
    return failures_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  void complain(const std::string& what) {
    fmt::print("FAILED: {}\n", what);
    std::fflush(stdout);
    ++failures_;
  }

  // A task folder is used once: results are written into it.
  fs::path copy_of(const std::string& task, const char* kind) {
    const fs::path to = place_.work / kind / task;
    std::error_code trouble;
    fs::create_directories(to.parent_path(), trouble);
    fs::copy(place_.prepared / kTaskSubfolder / task, to, fs::copy_options::recursive, trouble);
    if (trouble) complain(fmt::format("copy the task {}: {}", task, trouble.message()));
    return to;
  }

  void run_all() {
    Batch shipped{.worker = place_.worker, .without = {}, .folders = {}};
    for (const PreparedHonest& one : corpus_.honest) add(one.trial, shipped, "honest");
    for (const PreparedAttack& attack : corpus_.attacks) {
      add(attack.trial, shipped, "attacks");
      if (!attack.needs_weak_worker) add(attack.without, shipped, "without");
    }
    run(shipped);
    std::map<std::string, Batch> weak;
    for (const PreparedAttack& attack : corpus_.attacks) {
      if (!attack.needs_weak_worker) continue;
      const std::string all = fmt::format("{}", fmt::join(attack.defences, ","));
      Batch& batch = weak[attack.hangs ? attack.name : all];
      batch.worker = place_.weak_worker;
      batch.without = all;
      if (attack.hangs) batch.timeout_s = kHangPatience_s;
      add(attack.without, batch, "without");
      if (attack.defences.size() < 2) continue;
      for (const std::string& last : attack.defences) {
        Batch& but_one = weak["all but " + last + " of " + all];
        but_one.worker = place_.weak_worker;
        but_one.without = all_but(last, attack.defences);
        add(attack.without, but_one, alone(last).c_str());
      }
    }
    for (auto& [key, batch] : weak) run(batch);
  }

  void add(const Trial& trial, Batch& batch, const char* kind) {
    if (!trial.task.empty()) batch.folders.push_back(copy_of(trial.task, kind));
  }

  void run(const Batch& batch) {
    if (batch.folders.empty()) return;
    std::vector<std::string> command{batch.worker.string(), "--json"};
    for (const fs::path& folder : batch.folders) command.push_back(folder.string());
    const auto begin = std::chrono::steady_clock::now();
    const auto outcome = run_process({.command = std::move(command),
                                      .environment = environment_without(batch.without),
                                      .timeout_s = batch.timeout_s});
    const double wall_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print("{:3} tasks in {:5.1f} s {}\n", batch.folders.size(), wall_s,
               batch.without.empty() ? "" : "without " + batch.without);
    std::fflush(stdout);
    if (!outcome.ok()) return complain(outcome.error().text());
    const bool expected_end = outcome->timed_out && batch.timeout_s == kHangPatience_s;
    if (!expected_end && outcome->exit_code != 0)
      complain(fmt::format("{} ended with {}: {}", batch.worker.filename().string(),
                           outcome->exit_code, short_form(last_line(outcome->output))));
  }

  static std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1);
  }

  // How a task ended, by its result; a gain is told by the least favourable case.
  Finding finding_of(const Trial& trial, const char* kind, Gain gain, std::string& times) {
    if (trial.task.empty()) return trial.found;
    const fs::path folder = place_.work / kind / trial.task;
    const auto task = read_task_folder(folder);
    if (!task.ok()) return {"engine_failed", task.error().text()};
    if (!fs::exists(folder / kResultFile)) return {kNoAnswer, ""};
    const auto result = read_result(*task, folder);
    if (!result.ok()) return {"engine_failed", result.error().text()};
    const Evaluation& evaluation = result->evaluation;
    Finding found{std::string(to_string(evaluation.verdict)), evaluation.reason};
    for (const Measurement& measurement : evaluation.measurements) {
      const auto [candidate_ns, reference_ns] = times_of(measurement, gain == Gain::of_the_best);
      times = fmt::format("{:.1f} us against {:.1f} us", candidate_ns / 1e3, reference_ns / 1e3);
      if (gain != Gain::none && found.verdict == "accepted")
        found = {reference_ns >= kLeastGain * candidate_ns ? kGainWord : kNoGainWord, times};
    }
    return found;
  }

  void judge() {
    for (const PreparedHonest& one : corpus_.honest) {
      std::string times;
      const Finding found = finding_of(one.trial, "honest", Gain::none, times);
      honest_rows_.push_back({{"name", one.name},
                              {"verdict", found.verdict},
                              {"reason", found.reason},
                              {"times", times}});
      if (found.verdict == "accepted")
        ++accepted_;
      else
        complain(fmt::format("{}: {} ({}); it is honest", one.name, found.verdict,
                             short_form(found.reason)));
    }
    for (const PreparedAttack& attack : corpus_.attacks) judge(attack);
  }

  void judge(const PreparedAttack& attack) {
    std::string times, times_without;
    const Finding found = finding_of(attack.trial, "attacks", gain_of(attack), times);
    const bool as_expected = std::find(attack.expect.begin(), attack.expect.end(), found.verdict) !=
                                 attack.expect.end() &&
                             contains(found.reason, attack.says);
    if (!as_expected)
      complain(fmt::format("{}: {} ({}); expected {} with the words \"{}\"", attack.name,
                           found.verdict, short_form(found.reason),
                           fmt::join(attack.expect, " or "), attack.says));
    bool succeeded = false;
    Finding without;
    Json each_alone = Json::object();
    if (!attack.defences.empty()) {
      ++to_prove_;
      without = finding_of(attack.without, "without", gain_of(attack), times_without);
      // What has no end of its own is ended by us, or says so when its process is ended.
      succeeded =
          without.verdict == attack.success || (attack.hangs && without.verdict == kNoAnswer);
      proved_ += succeeded ? 1 : 0;
      if (!succeeded)
        complain(fmt::format("{} without {}: {} ({}); it should succeed", attack.name,
                             fmt::join(attack.defences, " and "), without.verdict,
                             short_form(without.reason)));
      if (attack.defences.size() > 1) each_alone = judge_alone(attack);
    }
    const bool proved = succeeded || attack.defences.empty();
    rejected_ += as_expected && proved ? 1 : 0;
    attack_rows_.push_back(
        {{"name", attack.name},
         {"text", attack.text},
         {"expected", attack.expect},
         {"verdict", found.verdict},
         {"reason", found.reason},
         {"fired", !as_expected || !proved   ? "unknown"
                   : attack.defences.empty() ? "none: " + attack.unprovable
                                             : fmt::format("{}", fmt::join(attack.defences, ", "))},
         {"without", without.verdict},
         {"without_reason", without.reason},
         {"each_alone", each_alone},
         {"times", times},
         {"times_without", times_without}});
  }

  // Of several defences each must do without the others.
  Json judge_alone(const PreparedAttack& attack) {
    Json rows = Json::object();
    for (const std::string& last : attack.defences) {
      std::string times;
      const Finding found = finding_of(attack.without, alone(last).c_str(), gain_of(attack), times);
      rows[last] = {{"verdict", found.verdict}, {"reason", found.reason}};
      if (found.verdict == attack.success || found.verdict == kNoAnswer)
        complain(fmt::format("{} with {} alone: {} ({}); it should be stopped", attack.name, last,
                             found.verdict, short_form(found.reason)));
    }
    return rows;
  }

  void write_results() {
    const Json json{{"attacks", attack_rows_}, {"honest", honest_rows_}};
    const auto written =
        write_file(place_.results, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    if (!written.ok()) complain(written.error().text());
  }

  Place place_;
  Corpus corpus_;
  Json attack_rows_ = Json::array();
  Json honest_rows_ = Json::array();
  int rejected_ = 0;
  int accepted_ = 0;
  int proved_ = 0;
  int to_prove_ = 0;
  int failures_ = 0;
};

int run(int count, char** words) {
  namespace fs = std::filesystem;
  if (count < 2 || count > 3) {
    fmt::print(stderr,
               "usage: {} PREPARED_FOLDER [RESULTS.json]\n"
               "kbeam-worker and kbeam-weak-worker lie beside this program\n",
               words[0]);
    return EXIT_FAILURE;
  }
  std::error_code trouble;
  const fs::path beside = fs::read_symlink("/proc/self/exe", trouble).parent_path();
  auto corpus = device_attacks::read_corpus(words[1]);
  const auto work = make_temporary_folder(fs::temp_directory_path(), "kbeam-attacks-");
  if (!corpus.ok() || !work.ok()) {
    fmt::print(stderr, "{}\n", (corpus.ok() ? work.error() : corpus.error()).text());
    return EXIT_FAILURE;
  }
  const int code =
      device_attacks::Run({words[1], beside / "kbeam-worker", beside / "kbeam-weak-worker", *work,
                           count > 2 ? words[2] : "attacks.json"},
                          *std::move(corpus))
          .go();
  fs::remove_all(*work, trouble);
  return code;
}

}  // namespace
}  // namespace kbeam::device_attacks

int main(int count, char** words) {
  return kbeam::device_attacks::run(count, words);
}
