#include "propose/secret.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/files.h"

namespace kbeam {
namespace {

// Shorter ones are no keys, and redaction would eat ordinary words.
constexpr std::size_t kLeastKey = 8;
// A piece of a key that is still worth hiding.
constexpr std::size_t kLeastPiece = 12;

constexpr std::string_view kHidden = "[key]";

Error no_key(const KeySource& source, std::string happened, std::string advice) {
  return {ErrorCode::bad_input, "read the key from " + source.text, std::move(happened),
          std::move(advice)};
}

Result<std::string> read_private_file(const KeySource& source, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return no_key(source, "there is no such file", "write the key into it, mode 600");
  if (!S_ISREG(status.st_mode))
    return no_key(source, "it is no regular file", "name the file with the key itself");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return no_key(source, "others may read that file", "chmod 600 " + path);
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return text.substr(0, text.find_first_of("\r\n"));
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    encoded += plain ? std::string(1, c)
                     : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return encoded;
}

// The characters of base64 that depend on `text` alone, whatever stands `offset` bytes before it.
std::string base64_core(std::string_view text, std::size_t offset) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string padded(offset, '\0');
  padded += text;
  std::string encoded;
  for (std::size_t i = 0; i + 3 <= padded.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return static_cast<unsigned>(static_cast<unsigned char>(padded[i + k]));
    };
    const unsigned bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (int shift = 18; shift >= 0; shift -= 6) encoded += kDigits[bits >> shift & 63];
  }
  return encoded.substr(offset == 0 ? 0 : 4);
}

void replace_all(std::string& text, std::string_view what) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + kHidden.size()))
    text.replace(at, what.size(), kHidden);
}

// Endpoints show "sk-abcd...wxyz", or leave a beginning out: every run of the key that is long
// enough to be worth hiding, wherever in the key it begins.
void replace_pieces(std::string& text, std::string_view key) {
  for (std::size_t begin = 0; begin + kLeastPiece <= key.size(); ++begin)
    for (std::size_t at = text.find(key.substr(begin, kLeastPiece)); at != std::string::npos;
         at = text.find(key.substr(begin, kLeastPiece), at + kHidden.size())) {
      std::size_t length = kLeastPiece;
      while (begin + length < key.size() && at + length < text.size() &&
             text[at + length] == key[begin + length])
        ++length;
      text.replace(at, length, kHidden);
    }
}

}  // namespace

Result<Secret> Secret::load(const KeySource& source) {
  if (source.text.empty()) return Secret();
  std::string key;
  if (source.text.starts_with("env:")) {
    const std::string name = source.text.substr(4);
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0')
      return no_key(source, "that variable is not set", "export " + name + " with the key in it");
    key = value;
  } else if (source.text.starts_with("file:")) {
    ASSIGN_OR_RETURN(key, read_private_file(source, source.text.substr(5)));
  } else {
    return Error{ErrorCode::bad_input, "find the key", "it is neither env:NAME nor file:PATH",
                 "name where the key is; a key itself does not belong on a command line"};
  }
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
  if (std::any_of(key.begin(), key.end(), is_odd))
    return no_key(source, "it holds blanks or characters that no header may have",
                  "put the key alone there");
  if (key.size() < kLeastKey)
    return no_key(source, fmt::format("it has fewer than {} characters", kLeastKey),
                  "put the whole key there");
  return Secret(std::move(key));
}

std::string Secret::redact(std::string text) const {
  if (key_.empty()) return text;
  std::vector<std::string> forms{key_, percent_encoded(key_)};
  for (std::size_t offset = 0; offset < 3; ++offset)
    if (std::string encoded = base64_core(key_, offset); encoded.size() >= kLeastKey)
      forms.push_back(std::move(encoded));
  for (const std::string& form : forms) replace_all(text, form);
  for (const std::string& form : forms) replace_pieces(text, form);
  return text;
}

}  // namespace kbeam
