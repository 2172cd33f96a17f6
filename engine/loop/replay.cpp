#include "loop/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "archive/archive.h"
#include "base/affinity.h"
#include "base/clock.h"
#include "base/entropy.h"
#include "build/build_cache.h"
#include "build/object_rules.h"
#include "loop/activity.h"
#include "loop/baseline.h"
#include "loop/build_queue.h"
#include "loop/campaign_search.h"
#include "loop/research_loop.h"
#include "loop/target_tools.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

struct RecordedObject {
  std::string key;  // of the build
  std::string object_hash;
};

// What the compiler had made of each row of the candidate.
Result<std::vector<RecordedObject>> recorded_objects(const Archive& archive,
                                                     const Candidate& candidate) {
  std::vector<RecordedObject> objects;
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive.events());
  for (const Event& event : events) {
    if (event.kind != "artifact") continue;
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "an artifact of the archive"));
    if (body.value("candidate_id", "") == candidate.id)
      objects.push_back({body.value("key", ""), body.value("object_hash", "")});
  }
  // A candidate that was judged twice has its objects twice: the last are the promotion's.
  if (objects.size() < candidate.rows.size())
    return Error{ErrorCode::corrupt, "read what was built of " + candidate.id,
                 "the archive has no artifact of some of its rows", "restore it from a copy"};
  objects.erase(objects.begin(),
                objects.end() - static_cast<std::ptrdiff_t>(candidate.rows.size()));
  return objects;
}

// Objects of the run that still lie in the cache. None is run here, but one that was changed would
// be run by others.
Result<void> inspect_cached(const std::filesystem::path& cache,
                            const std::vector<RecordedObject>& objects) {
  const BuildCache builds(cache / "builds");
  for (const RecordedObject& object : objects) {
    if (object.key.empty()) continue;
    const std::filesystem::path module = builds.place_of(object.key) / BuildCache::kModuleName;
    if (!std::filesystem::exists(module)) continue;
    ASSIGN_OR_RETURN(const bool whole, builds.is_whole(object.key));
    ASSIGN_OR_RETURN(const std::string bytes, read_file(module));
    if (!whole || hash_of_code(bytes) != object.object_hash)
      return Error{ErrorCode::corrupt, "read the object " + module.string(),
                   "it is not as it was built",
                   "remove " + module.parent_path().string() +
                       ": it is built again from the stored source when it is needed"};
  }
  return {};
}

class Replayer {
 public:
  Replayer(const ReplayRequest& request, Progress& progress)
      : request_(request), progress_(progress), meter_(clock_) {}

  Result<Replay> run() {
    RETURN_IF_ERROR(read_archive());
    RETURN_IF_ERROR(decide_again());
    RETURN_IF_ERROR(find_winner());
    if (!replay_.winner || request_.only_recorded || !replay_.recomputed.mistakes.empty())
      return std::move(replay_);
    RETURN_IF_ERROR(open_tools());
    RETURN_IF_ERROR(build_again());
    RETURN_IF_ERROR(measure_again());
    return std::move(replay_);
  }

 private:
  Result<void> read_archive();
  Result<void> decide_again();
  Result<void> find_winner();
  Result<void> open_tools();
  Result<void> build_again();
  Result<void> measure_again();
  MachineBench bench() {
    MachineBench bench{request_.problem, tools_.library->code(), *tools_.judge, *builds_,
                       progress_};
    if (replay_.config.target != "cpu") return bench;
    bench.all_cores = static_cast<int>(request_.candidate_cpus.size());
    bench.candidate_cpu = request_.candidate_cpus.front();
    return bench;
  }

  const ReplayRequest& request_;
  Progress& progress_;
  SystemClock clock_;
  ActivityMeter meter_;
  Replay replay_;
  std::string lock_holder_;  // said once a holder
  std::unique_ptr<Archive> archive_;
  std::vector<RecordedObject> objects_;
  std::optional<CacheDraft> cache_;  // removed at the end, however this ends
  TargetTools tools_;
  std::unique_ptr<BuildQueue> builds_;
};

Result<void> Replayer::read_archive() {
  progress_.phase("reading the archive");
  ASSIGN_OR_RETURN(archive_, Archive::open_read_only(request_.run_folder / "archive.sqlite"));
  RETURN_IF_ERROR(archive_->verify());
  replay_.config = archive_->config();
  ASSIGN_OR_RETURN(const std::vector<Event> events, archive_->events());
  replay_.events = static_cast<std::int64_t>(events.size());
  replay_.problem_changed = request_.problem.content_hash != replay_.config.problem_hash;
  return {};
}

Result<void> Replayer::decide_again() {
  progress_.phase("making its decisions again");
  CampaignSearch made;
  if (!replay_.problem_changed) {
    ASSIGN_OR_RETURN(made, make_search(request_.problem, replay_.config));
  }
  ASSIGN_OR_RETURN(replay_.recomputed, recompute_decisions(*archive_, made.search.get()));
  return {};
}

Result<void> Replayer::find_winner() {
  ASSIGN_OR_RETURN(const std::optional<Json> stop, archive_->last_event("stop"));
  if (!stop || !stop->value("winner", Json()).is_object()) return {};
  const Json& winner = stop->at("winner");
  const std::string id = winner.at("candidate_id").get<std::string>();
  ASSIGN_OR_RETURN(replay_.winner, archive_->find_candidate(id));
  if (!replay_.winner)
    return Error{ErrorCode::corrupt, "find the winner " + id, "the archive has no such candidate",
                 "restore it from a copy"};
  if (candidate_id(*replay_.winner) != id)
    return Error{ErrorCode::corrupt, "read the winner " + id, "its rows are not those of its id",
                 "restore the archive from a copy"};
  replay_.recorded = {winner.at("speedup_geomean").get<double>(),
                      winner.at("speedup_low").get<double>(),
                      winner.at("speedup_high").get<double>()};
  ASSIGN_OR_RETURN(objects_, recorded_objects(*archive_, *replay_.winner));
  return inspect_cached(request_.cache, objects_);
}

Result<void> Replayer::open_tools() {
  if (replay_.problem_changed)
    return Error{ErrorCode::bad_input, "judge the winner of " + replay_.config.run_id + " again",
                 "problem " + request_.problem.name + " has changed since the run began",
                 "check out the problem as it was, or use --only-recorded"};
  progress_.phase("preparing the compiler and the problem");
  ASSIGN_OR_RETURN(CacheDraft draft, BuildCache(request_.cache / "replays").start());
  cache_.emplace(std::move(draft));
  ASSIGN_OR_RETURN(
      tools_, open_target({.problem = request_.problem,
                           .home = request_.home,
                           .clock = clock_,
                           .target = replay_.config.target,
                           .cache = cache_->folder(),
                           .grade = replay_.config.grade,
                           .seed = random_bits(),
                           .fixed_key = std::nullopt,
                           .candidate_cpus = request_.candidate_cpus,
                           .builds_cancelled = {},
                           .give_up = {},
                           .say = {},
                           .on_lock_wait = [this](const std::string& holder) {
                             if (std::exchange(lock_holder_, holder) != holder)
                               progress_.event("waiting for the timing lock, held by " + holder);
                           }}));
  ASSIGN_OR_RETURN(const Environment now, probe_environment(tools_.compiler->version(),
                                                            tools_.compiler->candidate_flags()));
  const Environment then = archive_->environment();
  if (then.cpu != now.cpu || then.compiler != now.compiler)
    replay_.other_machine = fmt::format("it ran on {} with {}; this is {} with {}", then.cpu,
                                        then.compiler, now.cpu, now.compiler);
  builds_ = std::make_unique<BuildQueue>(*tools_.compiler, request_.problem.compile_flags, meter_);
  pin_this_thread(request_.judge_cpu);
  return {};
}

Result<void> Replayer::build_again() {
  progress_.phase("rebuilding the winner from the stored source");
  const BuiltCandidate built = builds_->build_now(*replay_.winner);
  if (built.engine_error) return *built.engine_error;
  if (const Artifact* failed = built.failed())
    return Error{ErrorCode::unavailable, "rebuild the winner " + replay_.winner->id, failed->reason,
                 "compare this machine's compiler with the recorded one: " +
                     archive_->environment().compiler};
  if (!replay_.other_machine.empty()) return {};
  for (std::size_t i = 0; i < built.artifacts.size(); ++i)
    if (built.artifacts[i].object_hash != objects_[i].object_hash)
      return Error{ErrorCode::corrupt,
                   fmt::format("rebuild row {} of the winner {}", i, replay_.winner->id),
                   "the same compiler makes other machine code of the stored source than was "
                   "recorded (" +
                       objects_[i].object_hash + ")",
                   "the record or the compiler was changed: compare both with a copy"};
  return {};
}

// Two intervals of one speed-up meet; a record that was made up does not.
std::string why_unlike(const Replay::Recorded& recorded, const GeomeanSummary& now) {
  if (now.high >= recorded.low) return {};
  return fmt::format(
      "the record says {:.2f}x [{:.2f}, {:.2f}], more than was measured now: at most {:.2f}x",
      recorded.speedup, recorded.low, recorded.high, now.high);
}

Result<void> Replayer::measure_again() {
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive_->last_event("baseline"));
  if (!recorded)
    return Error{ErrorCode::corrupt, "read the baseline of " + replay_.config.run_id,
                 "the archive has none", "restore it from a copy"};
  progress_.phase("preparing the baseline");
  BaselineFacts baseline;
  if (replay_.other_machine.empty()) {
    ASSIGN_OR_RETURN(baseline, baseline_from_json(*recorded));
    RETURN_IF_ERROR(restore_baseline(bench(), baseline));
  } else {
    ASSIGN_OR_RETURN(baseline, measure_baseline(bench()));
  }
  progress_.phase("checking the winner on new seeds and measuring it anew");
  ASSIGN_OR_RETURN(const std::optional<Json> promoted, archive_->last_event("promotion"));
  const int slower_allowed = promoted ? promoted->value("slower_allowed", 0) : 0;
  replay_.promotion = promote(bench(), baseline, *replay_.winner,
                              {.sealed_seed = random_bits(), .slower_allowed = slower_allowed});
  replay_.not_confirmed_because = why_not_won(*replay_.promotion);
  if (replay_.not_confirmed_because.empty() && replay_.other_machine.empty())
    replay_.not_confirmed_because = why_unlike(replay_.recorded, replay_.promotion->geomean);
  return {};
}

}  // namespace

Result<Replay> replay_run(const ReplayRequest& request, Progress& progress) {
  return Replayer(request, progress).run();
}

}  // namespace kbeam
