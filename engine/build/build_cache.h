// A folder of results by content address, shared by every kbeam of this user. A result appears
// whole, by the rename of its folder, or not at all; a damaged one is removed when it is met. Knows
// nothing of compilers.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/own_lock.h"
#include "base/result.h"
#include "model/candidate.h"

namespace kbeam {

// A folder in the making, locked by this process; removed at the end unless it was kept.
class CacheDraft {
 public:
  CacheDraft(std::filesystem::path folder, OwnLock lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  ~CacheDraft();
  CacheDraft(CacheDraft&& other) noexcept;
  CacheDraft(const CacheDraft&) = delete;
  CacheDraft& operator=(const CacheDraft&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  OwnLock lock_;
};

// Says that a folder of results is in use: whoever reads paths of results out of it shares its lock
// while it lives, and whoever removes results needs it alone. Null when it cannot be had.
class CacheUse {
 public:
  static std::shared_ptr<const CacheUse> share(const std::filesystem::path& folder);
  static std::shared_ptr<const CacheUse> try_exclusive(const std::filesystem::path& folder);
  ~CacheUse();
  CacheUse(const CacheUse&) = delete;
  CacheUse& operator=(const CacheUse&) = delete;

 private:
  explicit CacheUse(int file) : file_(file) {}
  static std::shared_ptr<const CacheUse> lock(const std::filesystem::path& folder, int operation);
  int file_;
};

class BuildCache {
 public:
  // Links on the way are resolved: a compiler may remember the paths of what it read.
  explicit BuildCache(const std::filesystem::path& folder)
      : folder_(std::filesystem::weakly_canonical(folder)), use_(CacheUse::share(folder_)) {}

  static constexpr char kModuleName[] = "module.so";

  std::optional<Artifact> find(const std::string& key) const;
  Result<CacheDraft> start() const;
  // Makes the draft the result for artifact.key. When another process was faster, its result is
  // returned.
  Result<Artifact> keep(CacheDraft draft, Artifact artifact) const;
  // The same for a folder that is no Artifact, such as the prelude.
  Result<std::filesystem::path> keep_folder(CacheDraft draft, const std::string& key) const;
  std::filesystem::path place_of(const std::string& key) const;
  // Whether the result for `key` is as it was kept; an error when there is none. Mends nothing.
  Result<bool> is_whole(const std::string& key) const;
  // Removes drafts of processes that died.
  void remove_abandoned_drafts() const;

 private:
  std::filesystem::path folder_;
  std::shared_ptr<const CacheUse> use_;  // null where a file system has no locks
};

}  // namespace kbeam
