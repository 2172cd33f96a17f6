#include "execute/device_state.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/files.h"
#include "base/foreign_json.h"
#include "base/shown_text.h"
#include "execute/carried_file.h"
#include "model/json_forms.h"

namespace kbeam {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "kbeam-gpu-";
constexpr const char* kStateSuffix = ".state";
// Records lie where every user of the machine may write.
constexpr std::size_t kLongestWord = 100;
constexpr std::int64_t kLastUnixMs = 253'402'300'799'999;  // of the year 9999

// A UUID as part of a file name: nothing in it may lead elsewhere.
std::string as_file_name(const std::string& uuid) {
  std::string name;
  for (const char letter : uuid)
    name += std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' ? letter : '_';
  return name;
}

Result<void> append_line(const fs::path& file, const std::string& line) {
  const auto failed = [&] {
    return Error{ErrorCode::io, "write " + file.string(), std::strerror(errno),
                 "make the file readable and writable for every user of kbeam on this machine"};
  };
  const int opened = open_shared_file(file);
  if (opened < 0) return failed();
  const bool written =
      ::lseek(opened, 0, SEEK_END) >= 0 &&
      ::write(opened, line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fsync(opened) == 0;
  const int trouble = errno;
  ::close(opened);
  errno = trouble;
  return written ? Result<void>() : Result<void>(failed());
}

Quarantine unreadable(const std::string& uuid, const fs::path& file, const std::string& why) {
  return {uuid, "a GPU", "its record " + file.string() + " cannot be read: " + why, 0};
}

// The state after the last line of a record.
std::optional<Quarantine> read_record(const std::string& uuid, const fs::path& file) {
  // The name may be a link that somebody planted.
  const Result<std::string> content =
      read_carried_file(file.parent_path(), file.filename().string());
  if (!content.ok()) return unreadable(uuid, file, content.error().happened);
  std::string last;
  std::size_t begin = 0;
  while (begin < content->size()) {
    const std::size_t end = std::min(content->find('\n', begin), content->size());
    if (end > begin) last = content->substr(begin, end - begin);
    begin = end + 1;
  }
  if (last.empty()) return std::nullopt;
  const Json json = parse_foreign_json(last);
  try {
    const std::string event = json.at("event").get<std::string>();
    if (event == "cleared") return std::nullopt;
    return Quarantine{
        json.at("uuid").get<std::string>(), json.at("name").get<std::string>(),
        json.at("evidence").get<std::string>(),
        std::clamp<std::int64_t>(json.at("unix_ms").get<std::int64_t>(), 0, kLastUnixMs)};
  } catch (const Json::exception& trouble) {
    return unreadable(uuid, file, trouble.what());
  }
}

}  // namespace

std::string Quarantine::text() const {
  return fmt::format(
      "{} ({}) is quarantined since {:%Y-%m-%d %H:%M} UTC: {}; `kbeam-worker --probe --clear` "
      "lifts "
      "it after a probe that passes",
      shown_line(name, kLongestWord), shown_line(uuid, kLongestWord),
      fmt::gmtime(static_cast<std::time_t>(since_unix_ms / 1000)), shown_line(evidence));
}

fs::path DeviceStates::default_folder() {
  // /var/tmp: kept over a restart of the machine, and writable by every user.
  const char* named = std::getenv("KBEAM_DEVICE_STATE");
  return named != nullptr && *named != '\0' ? fs::path(named) : fs::path("/var/tmp");
}

DeviceStates::DeviceStates(fs::path folder) : folder_(std::move(folder)) {}

fs::path DeviceStates::file_of(const std::string& uuid, const char* suffix) const {
  return folder_ / (std::string(kPrefix) + as_file_name(uuid) + suffix);
}

Result<void> DeviceStates::quarantine(const Quarantine& found) const {
  const Json line{{"event", "quarantined"},
                  {"uuid", found.uuid},
                  {"name", found.name},
                  {"evidence", found.evidence},
                  {"unix_ms", found.since_unix_ms}};
  return append_line(file_of(found.uuid, kStateSuffix), json_text(line) + "\n");
}

Result<void> DeviceStates::clear(const std::string& uuid, const std::string& evidence,
                                 std::int64_t unix_ms) const {
  const Json line{
      {"event", "cleared"}, {"uuid", uuid}, {"evidence", evidence}, {"unix_ms", unix_ms}};
  return append_line(file_of(uuid, kStateSuffix), json_text(line) + "\n");
}

std::optional<Quarantine> DeviceStates::find(const std::string& uuid) const {
  const fs::path file = file_of(uuid, kStateSuffix);
  std::error_code trouble;
  if (!fs::exists(fs::symlink_status(file, trouble))) return std::nullopt;
  return read_record(uuid, file);
}

std::vector<Quarantine> DeviceStates::all() const {
  std::vector<Quarantine> found;
  std::error_code trouble;
  for (const auto& entry : fs::directory_iterator(folder_, trouble)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kStateSuffix)) continue;
    const std::string uuid =
        name.substr(kPrefix.size(), name.size() - kPrefix.size() - std::strlen(kStateSuffix));
    if (auto quarantine = read_record(uuid, entry.path())) found.push_back(std::move(*quarantine));
  }
  std::ranges::sort(found, {}, &Quarantine::uuid);
  return found;
}

Result<std::unique_ptr<FileLock>> DeviceStates::lock(
    const std::string& uuid, const std::function<void(const std::string&)>& on_wait) const {
  return FileLock::acquire(file_of(uuid, ".lock"), on_wait);
}

}  // namespace kbeam
