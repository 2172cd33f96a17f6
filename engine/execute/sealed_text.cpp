#include "execute/sealed_text.h"

#include "base/hash.h"

namespace kbeam {
namespace {

constexpr std::string_view kFormatKey = "{\"format\":\"";
constexpr std::string_view kSealKey = "\",\"seal\":\"";
constexpr std::string_view kBodyKey = "\",\"body\":";
constexpr std::string_view kEnd = "}\n";
constexpr std::size_t kSealLength = 64;

std::string seal_of(const Seal& seal, std::string_view body) {
  const std::string text = seal.format + "\n" + std::string(body);
  return seal.key.empty() ? sha256_hex(text) : hmac_sha256_hex(seal.key, text);
}

Error refused(const std::string& what, std::string happened, std::string advice) {
  return {ErrorCode::corrupt, "read " + what, std::move(happened), std::move(advice)};
}

// Takes `expected` off the front of `rest`.
bool take(std::string_view& rest, std::string_view expected) {
  if (!rest.starts_with(expected)) return false;
  rest.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::string seal_text(const Seal& seal, std::string_view body) {
  std::string text(kFormatKey);
  text += seal.format;
  text += kSealKey;
  text += seal_of(seal, body);
  text += kBodyKey;
  text += body;
  text += kEnd;
  return text;
}

Result<SealedText> take_apart(const Seal& seal, std::string_view text, const std::string& what) {
  std::string_view rest = text;
  const std::string copy_again = "copy the folder again";
  if (!take(rest, kFormatKey) || !take(rest, seal.format))
    return refused(what,
                   text.size() < kFormatKey.size() + seal.format.size()
                       ? "it is truncated: not even its beginning is there"
                       : "it does not begin as a \"" + seal.format + "\" does",
                   "is it from this version of kbeam? else " + copy_again);
  if (!take(rest, kSealKey) || rest.size() < kSealLength)
    return refused(what, rest.empty() ? "it is truncated" : "it is unsealed",
                   "only files that kbeam itself wrote are read");
  const std::string found(rest.substr(0, kSealLength));
  rest.remove_prefix(kSealLength);
  if (found.find_first_not_of("0123456789abcdef") != std::string::npos || !take(rest, kBodyKey))
    return refused(what, "it is unsealed", "only files that kbeam itself wrote are read");
  if (!rest.ends_with(kEnd))
    return refused(what, "it is truncated: its end is missing", copy_again);
  rest.remove_suffix(kEnd.size());
  return SealedText{found, std::string(rest)};
}

Result<void> verify_seal(const Seal& seal, const SealedText& sealed, const std::string& what) {
  if (seal_of(seal, sealed.body) == sealed.seal) return {};
  return refused(what, "it was changed after it was sealed",
                 "copy it again from where it was written");
}

Result<std::string> open_sealed(const Seal& seal, std::string_view text, const std::string& what) {
  ASSIGN_OR_RETURN(SealedText sealed, take_apart(seal, text, what));
  RETURN_IF_ERROR(verify_seal(seal, sealed, what));
  return std::move(sealed.body);
}

}  // namespace kbeam
