#include "build/build_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/foreign_json.h"
#include "base/hash.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr char kRecordName[] = "artifact.json";
constexpr char kDraftPrefix[] = "draft-";

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

bool sync_path(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool synced = ::fsync(descriptor) == 0;
  ::close(descriptor);
  return synced;
}

Error cache_error(const fs::path& place, const std::string& happened) {
  return {ErrorCode::io, "store a build in " + place.string(), happened,
          "check free space and permissions, or choose another cache with XDG_CACHE_HOME"};
}

std::string module_hash(const fs::path& folder) {
  const auto content = read_file(folder / BuildCache::kModuleName);
  return content.ok() ? sha256_hex(*content) : std::string();
}

std::optional<Artifact> read_entry(const fs::path& place) {
  const auto text = read_file(place / kRecordName);
  if (!text.ok()) return std::nullopt;
  const Json record = parse_foreign_json(*text);
  if (!record.is_object() || !record.contains("artifact") || !record.contains("module_sha256"))
    return std::nullopt;
  auto artifact = artifact_from_json(record["artifact"]);
  if (!artifact.ok()) return std::nullopt;
  if (artifact->verdict == Verdict::accepted) {
    if (record["module_sha256"] != module_hash(place)) return std::nullopt;
    artifact->module = place / BuildCache::kModuleName;
  }
  return *artifact;
}

}  // namespace

CacheDraft::CacheDraft(CacheDraft&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), lock_(std::move(other.lock_)) {}

CacheDraft::~CacheDraft() {
  if (!folder_.empty()) remove_folder(folder_);
}

std::shared_ptr<const CacheUse> CacheUse::lock(const fs::path& folder, int operation) {
  std::error_code trouble;
  fs::create_directories(folder, trouble);
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::shared_ptr<const CacheUse> use(new CacheUse(file));
  while (::flock(file, operation) != 0)
    if (errno != EINTR) return nullptr;
  return use;
}

std::shared_ptr<const CacheUse> CacheUse::share(const fs::path& folder) {
  return lock(folder, LOCK_SH);
}

std::shared_ptr<const CacheUse> CacheUse::try_exclusive(const fs::path& folder) {
  return lock(folder, LOCK_EX | LOCK_NB);
}

CacheUse::~CacheUse() {
  ::close(file_);
}

fs::path BuildCache::place_of(const std::string& key) const {
  return folder_ / key.substr(0, 2) / key;
}

std::optional<Artifact> BuildCache::find(const std::string& key) const {
  const fs::path place = place_of(key);
  std::error_code trouble;
  if (!fs::exists(place, trouble)) return std::nullopt;
  std::optional<Artifact> artifact = read_entry(place);
  if (!artifact || artifact->key != key) {
    // Renamed first, so that nobody meets it half removed.
    const auto grave = start();
    if (grave.ok()) fs::rename(place, grave->folder() / "damaged", trouble);
    return std::nullopt;
  }
  artifact->from_cache = true;
  fs::last_write_time(place, fs::file_time_type::clock::now(), trouble);  // for gc: used today
  return artifact;
}

Result<bool> BuildCache::is_whole(const std::string& key) const {
  const fs::path place = place_of(key);
  if (std::error_code trouble; !fs::exists(place, trouble))
    return Error{ErrorCode::not_found, "read the build " + key, "there is none in the cache",
                 "build it again"};
  const std::optional<Artifact> artifact = read_entry(place);
  return artifact.has_value() && artifact->key == key;
}

Result<CacheDraft> BuildCache::start() const {
  for (;;) {
    ASSIGN_OR_RETURN(fs::path folder, make_temporary_folder(folder_, kDraftPrefix));
    // Until it is locked it looks abandoned, and may be removed: then begin again.
    if (auto lock = OwnLock::try_take(folder))
      return CacheDraft(std::move(folder), std::move(*lock));
    if (std::error_code trouble; fs::exists(folder, trouble)) {
      remove_folder(folder);
      return cache_error(folder, "it cannot be locked");
    }
  }
}

Result<fs::path> BuildCache::keep_folder(CacheDraft draft, const std::string& key) const {
  const fs::path place = place_of(key);
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(draft.folder()))
    if (!sync_path(entry.path()))
      return cache_error(place, std::string("sync: ") + std::strerror(errno));
  if (!sync_path(draft.folder()))
    return cache_error(place, std::string("sync: ") + std::strerror(errno));
  fs::create_directories(place.parent_path(), trouble);
  // Onto a folder that exists with files in it this fails: the first of two equal builds stays.
  if (::rename(draft.folder().c_str(), place.c_str()) != 0) {
    if (errno != EEXIST && errno != ENOTEMPTY) return cache_error(place, std::strerror(errno));
    return place;
  }
  sync_path(place.parent_path());
  return place;
}

Result<Artifact> BuildCache::keep(CacheDraft draft, Artifact artifact) const {
  const bool has_module = artifact.verdict == Verdict::accepted;
  artifact.module = has_module ? fs::path(kModuleName) : fs::path();
  artifact.from_cache = false;
  const Json record = {{"artifact", to_json(artifact)},
                       {"module_sha256", has_module ? module_hash(draft.folder()) : std::string()}};
  RETURN_IF_ERROR(write_file(draft.folder() / kRecordName, record.dump(2)));
  ASSIGN_OR_RETURN(const fs::path place, keep_folder(std::move(draft), artifact.key));
  const std::optional<Artifact> kept = read_entry(place);
  if (!kept) return cache_error(place, "it reads back damaged");
  artifact = *kept;
  artifact.from_cache = false;
  return artifact;
}

void BuildCache::remove_abandoned_drafts() const {
  std::error_code trouble;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, trouble)) {
    if (!entry.path().filename().string().starts_with(kDraftPrefix)) continue;
    if (const auto lock = OwnLock::try_take(entry.path())) remove_folder(entry.path());
  }
}

}  // namespace kbeam
