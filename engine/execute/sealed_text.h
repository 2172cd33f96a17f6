// JSON in an envelope that protects its exact bytes: {"format":..., "seal":..., "body":...}. The
// seal is a SHA-256, or an HMAC-SHA256 where there is a key. Knows nothing of what the body means.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace kbeam {

struct Seal {
  std::string format;  // "kbeam task 1": what the body is, and in which version
  std::string key;     // hexadecimal; empty: a plain hash, which only finds accidents
};

std::string seal_text(const Seal& seal, std::string_view body);

// The envelope taken apart, not yet trusted.
struct SealedText {
  std::string seal;
  std::string body;
};
// Refuses text that is cut short, of another format, or without a seal. `what` names it in errors.
Result<SealedText> take_apart(const Seal& seal, std::string_view text, const std::string& what);

// Refuses a body whose bytes are not those that were sealed.
Result<void> verify_seal(const Seal& seal, const SealedText& sealed, const std::string& what);

// Both steps.
Result<std::string> open_sealed(const Seal& seal, std::string_view text, const std::string& what);

}  // namespace kbeam
