// A key for an endpoint: read from the environment or a file, used in one header, and taken out of
// every text that comes back before anybody else sees it. Never printed, stored or put into an
// error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kbeam {

// Where a key is; this may be recorded, the key may not. "": no key.
//   env:NAME    an environment variable
//   file:PATH   the first line of a file that only its owner can read
struct KeySource {
  std::string text;
};

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string key) : key_(std::move(key)) {}
  // Errors name the source and say what is wrong with it, without a character of the key.
  static Result<Secret> load(const KeySource& source);

  bool empty() const { return key_.empty(); }
  // For the header alone.
  const std::string& reveal() const { return key_; }

  // `text` with "[key]" in place of the key, also where it is percent-encoded, in base64 or cut
  // short by an endpoint that shows a piece of it.
  std::string redact(std::string text) const;

 private:
  std::string key_;
};

}  // namespace kbeam
