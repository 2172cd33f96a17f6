// SHA-256 over length-prefixed fields: ("ab", "c") and ("a", "bc") differ.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kbeam {

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& field(std::string_view bytes);
  Hasher& field(std::int64_t number);
  std::string hex();  // 64 characters; ends the hash

 private:
  void* context_;
};

std::string sha256_hex(std::string_view bytes);

// HMAC-SHA256 (RFC 2104), 64 characters.
std::string hmac_sha256_hex(std::string_view key, std::string_view bytes);

}  // namespace kbeam
