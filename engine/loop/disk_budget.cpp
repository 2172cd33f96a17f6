#include "loop/disk_budget.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "archive/archive.h"
#include "archive/writer_lock.h"
#include "base/entropy.h"
#include "base/own_lock.h"
#include "build/build_cache.h"

namespace kbeam {
namespace fs = std::filesystem;
namespace {

constexpr const char* kGravePrefix = ".dropped-";
constexpr const char* kCacheParts[] = {"builds", "preludes", "replays"};

std::int64_t size_of(const fs::path& path) {
  std::error_code trouble;
  if (fs::is_regular_file(fs::symlink_status(path, trouble)))
    return static_cast<std::int64_t>(fs::file_size(path, trouble));
  std::int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path, trouble))
    if (fs::is_regular_file(entry.symlink_status(trouble)))
      bytes += static_cast<std::int64_t>(entry.file_size(trouble));
  return bytes;
}

struct Place {  // that may be dropped
  fs::path path;
  std::int64_t bytes = 0;
  fs::file_time_type used;
};

std::vector<Place> oldest_first(std::vector<Place> places) {
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.used < b.used; });
  return places;
}

// builds/ab/abcdef...: one result each.
std::vector<Place> builds_in(const fs::path& cache) {
  std::vector<Place> places;
  std::error_code trouble;
  for (const char* part : kCacheParts)
    for (const auto& shelf : fs::directory_iterator(cache / part, trouble))
      if (!shelf.is_symlink(trouble))  // what lies behind a link is not the cache's
        for (const auto& entry : fs::directory_iterator(shelf.path(), trouble))
          if (entry.is_directory(trouble) && !entry.is_symlink(trouble))
            places.push_back({entry.path(), size_of(entry.path()), entry.last_write_time(trouble)});
  return oldest_first(std::move(places));
}

// Renamed first, so that nobody meets it half removed, and a killed gc leaves what the next clears.
bool drop(const fs::path& path) {
  std::error_code trouble;
  const fs::path grave = path.parent_path() / (kGravePrefix + random_letters(8));
  fs::rename(path, grave, trouble);
  if (trouble) return false;
  fs::remove_all(grave, trouble);
  return !trouble;
}

class Collector {
 public:
  explicit Collector(const DiskBudget& budget) : budget_(budget) {}

  Result<DiskAccount> run() {
    account_.before_bytes = account_.after_bytes = size_of(budget_.runs) + size_of(budget_.cache);
    drop_leftovers();
    if (budget_.only_runs.empty()) drop_builds();
    RETURN_IF_ERROR(drop_runs());
    return std::move(account_);
  }

 private:
  bool is_enough() const { return account_.after_bytes <= budget_.keep_bytes; }
  void drop_leftovers();
  void drop_builds();
  Result<void> drop_runs();
  std::optional<std::string> why_run_stays(const fs::path& run) const;
  void take_off(const Place& place, const std::string& why) {
    if (!budget_.dry_run && !drop(place.path)) {
      account_.kept.push_back({place.path, place.bytes, "it could not be removed"});
      return;
    }
    account_.after_bytes -= place.bytes;
    account_.dropped.push_back({place.path, place.bytes, why});
  }
  std::vector<fs::path> candidate_runs() const;

  const DiskBudget& budget_;
  DiskAccount account_;
};

// What killed processes left; whatever the budget.
void Collector::drop_leftovers() {
  std::error_code trouble;
  const auto note = [&](const fs::path& path, std::int64_t bytes, const char* why) {
    account_.after_bytes -= bytes;
    account_.dropped.push_back({path, bytes, why});
  };
  for (const auto& entry : fs::directory_iterator(budget_.runs, trouble)) {
    const std::string name = entry.path().filename().string();
    const std::int64_t bytes = size_of(entry.path());
    if (name.starts_with(kGravePrefix)) {
      if (!budget_.dry_run) fs::remove_all(entry.path(), trouble);
      note(entry.path(), bytes, "left by a gc that was killed");
    } else if (!budget_.dry_run && remove_stillborn_run(entry.path())) {
      note(entry.path(), bytes, "left by a run that was killed before it began");
    } else if (!budget_.dry_run && !WriterLock::find_holder(entry.path() / "archive.sqlite")) {
      for (const char* folder : {"", "inbox"})
        for (const fs::path& part : remove_abandoned_parts(entry.path() / folder))
          note(part, 0, "left by a process that was killed while it wrote");
    }
  }
  if (!budget_.dry_run)
    for (const char* part : kCacheParts) BuildCache(budget_.cache / part).remove_abandoned_drafts();
}

void Collector::drop_builds() {
  if (is_enough()) return;
  std::vector<Place> places = builds_in(budget_.cache);
  const auto unused = CacheUse::try_exclusive(budget_.cache / "builds");
  if (!unused && !places.empty()) {
    account_.kept.push_back({budget_.cache, size_of(budget_.cache), "a running kbeam uses it"});
    return;
  }
  for (const Place& place : places) {
    if (is_enough()) return;
    take_off(place, "a build: it is made again from its source when it is needed");
  }
}

std::vector<fs::path> Collector::candidate_runs() const {
  if (!budget_.only_runs.empty()) return budget_.only_runs;
  std::vector<fs::path> runs;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(budget_.runs, trouble))
    if (fs::exists(entry.path() / "archive.sqlite", trouble)) runs.push_back(entry.path());
  return runs;
}

// Nothing when it may go: nobody writes to it, it can be read, and nothing was promoted in it.
std::optional<std::string> Collector::why_run_stays(const fs::path& run) const {
  const fs::path file = run / "archive.sqlite";
  if (const auto holder = WriterLock::find_holder(file)) return "it is running: " + *holder;
  const auto archive = Archive::open_read_only(file);
  if (!archive.ok()) return "it cannot be read: " + archive.error().happened;
  const auto events = (*archive)->events();
  if (!events.ok()) return "it cannot be read: " + events.error().happened;
  for (const Event& event : *events) {
    if (event.kind == "frozen" || event.kind == "promotion")
      return "it holds what a promotion was decided on";
    // The first runs did not write these events.
    if (event.kind == "evaluation" && event.body.find("\"stage\":\"promote\"") != std::string::npos)
      return "it holds what a promotion was decided on";
  }
  return std::nullopt;
}

Result<void> Collector::drop_runs() {
  std::vector<Place> places;
  for (const fs::path& run : candidate_runs()) {
    std::error_code trouble;
    places.push_back({run, size_of(run), fs::last_write_time(run / "archive.sqlite", trouble)});
  }
  for (const Place& place : oldest_first(std::move(places))) {
    if (is_enough()) return {};
    if (const auto why = why_run_stays(place.path)) {
      account_.kept.push_back({place.path, place.bytes, *why});
      continue;
    }
    // Held while it goes, so that nobody resumes it meanwhile.
    const Result<WriterLock> lock = budget_.dry_run
                                        ? Result<WriterLock>(Error{})
                                        : WriterLock::take(place.path / "archive.sqlite");
    if (!budget_.dry_run && !lock.ok()) {
      account_.kept.push_back({place.path, place.bytes, lock.error().happened});
      continue;
    }
    take_off(place, "a run without a promotion");
  }
  return {};
}

}  // namespace

Result<DiskAccount> collect_garbage(const DiskBudget& budget) {
  return Collector(budget).run();
}

}  // namespace kbeam
