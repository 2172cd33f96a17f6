#include "base/hash.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <span>

#include "base/check.h"

namespace kbeam {
namespace {

EVP_MD_CTX* as_context(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

std::string to_hex(std::span<const unsigned char> digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

Hasher::Hasher() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr, "out of memory");
  CHECK(EVP_DigestInit_ex(as_context(context_), EVP_sha256(), nullptr) == 1,
        "libcrypto has SHA-256");
}

Hasher::~Hasher() {
  EVP_MD_CTX_free(as_context(context_));
}

Hasher& Hasher::field(std::string_view bytes) {
  const std::string length = std::to_string(bytes.size()) + ":";
  EVP_DigestUpdate(as_context(context_), length.data(), length.size());
  EVP_DigestUpdate(as_context(context_), bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::field(std::int64_t number) {
  return field(std::to_string(number));
}

std::string Hasher::hex() {
  unsigned char digest[32];
  unsigned int size = 0;
  EVP_DigestFinal_ex(as_context(context_), digest, &size);
  return to_hex(std::span(digest, size));
}

std::string sha256_hex(std::string_view bytes) {
  return Hasher().field(bytes).hex();
}

std::string hmac_sha256_hex(std::string_view key, std::string_view bytes) {
  unsigned char digest[32];
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest,
             &size) != nullptr,
        "libcrypto has HMAC-SHA256");
  return to_hex(std::span(digest, size));
}

}  // namespace kbeam
