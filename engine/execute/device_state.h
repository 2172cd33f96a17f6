// What a machine remembers of its GPUs, for every user and every kbeam on it: which ones are
// quarantined since when and on what evidence, and who uses one right now. Talks to no device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"

namespace kbeam {

// A device that gave a wrong answer to a known question. It is not used until a probe that passes
// is recorded by `kbeam-worker --probe --clear`.
struct Quarantine {
  std::string uuid;
  std::string name;
  std::string evidence;  // what was seen, in words
  std::int64_t since_unix_ms = 0;
  std::string text() const;  // one sentence for status and doctor
};

// One file a device, one line an event; the last line counts and none is ever removed. A file that
// cannot be read counts as a quarantine.
class DeviceStates {
 public:
  static std::filesystem::path default_folder();  // KBEAM_DEVICE_STATE, else /var/tmp
  explicit DeviceStates(std::filesystem::path folder = default_folder());

  Result<void> quarantine(const Quarantine& found) const;
  Result<void> clear(const std::string& uuid, const std::string& evidence,
                     std::int64_t unix_ms) const;
  std::optional<Quarantine> find(const std::string& uuid) const;
  std::vector<Quarantine> all() const;

  // One evaluation at a time on a device: waits for it.
  Result<std::unique_ptr<FileLock>> lock(
      const std::string& uuid, const std::function<void(const std::string& holder)>& on_wait) const;

 private:
  std::filesystem::path file_of(const std::string& uuid, const char* suffix) const;
  std::filesystem::path folder_;
};

}  // namespace kbeam
