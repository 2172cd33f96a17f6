// A folder of results by content address, shared by every kbeam of this user. A result appears
// whole, by the rename of its folder, or not at all; a damaged one is removed when it is met. Knows
// nothing of compilers.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/candidate.h"

namespace kbeam {

// A folder in the making, locked by this process; removed at the end unless it was kept.
class CacheDraft {
 public:
  CacheDraft(std::filesystem::path folder, int lock) : folder_(std::move(folder)), lock_(lock) {}
  ~CacheDraft();
  CacheDraft(CacheDraft&& other) noexcept;
  CacheDraft(const CacheDraft&) = delete;
  CacheDraft& operator=(const CacheDraft&) = delete;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  int lock_;
};

class BuildCache {
 public:
  // Links on the way are resolved: a compiler may remember the paths of what it read.
  explicit BuildCache(const std::filesystem::path& folder)
      : folder_(std::filesystem::weakly_canonical(folder)) {}

  static constexpr char kModuleName[] = "module.so";

  std::optional<Artifact> find(const std::string& key) const;
  Result<CacheDraft> start() const;
  // Makes the draft the result for artifact.key. When another process was faster, its result is
  // returned.
  Result<Artifact> keep(CacheDraft draft, Artifact artifact) const;
  // The same for a folder that is no Artifact, such as the prelude.
  Result<std::filesystem::path> keep_folder(CacheDraft draft, const std::string& key) const;
  std::filesystem::path place_of(const std::string& key) const;
  // Removes drafts of processes that died.
  void remove_abandoned_drafts() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace kbeam
