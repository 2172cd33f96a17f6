// Nouns as JSON and back from one list of fields each: walk(visit, noun) calls visit("name", field)
// for every field, and both the writer and the reader follow it, so that neither can know a field
// that the other lacks. For source files that define forms; includes the whole JSON library.
//
// A file that defines forms has, in namespace kbeam and before it calls write_value or read_noun:
//   static void walk(auto& visit, Is<Noun> auto& noun);
//   static const auto& every_value(SomeEnum);      // with to_string(SomeEnum): travels as its word
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/json_forms.h"

namespace kbeam {

template <typename T, typename Noun>
concept Is = std::same_as<std::remove_const_t<T>, Noun>;

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;
template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;
template <typename T>
inline constexpr bool kIsMap = false;
template <typename T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

// ---- writing ----

inline Json write_value(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

template <typename T>
Json write_value(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return value.string();
  } else if constexpr (kIsOptional<T>) {
    return value ? write_value(*value) : Json(nullptr);
  } else if constexpr (kIsVector<T>) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(write_value(element));
    return array;
  } else if constexpr (kIsMap<T>) {
    Json object = Json::object();
    for (const auto& [name, element] : value) object[name] = write_value(element);
    return object;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else {
    Json object = Json::object();
    const auto visit = [&](const char* name, const auto& field) {
      object[name] = write_value(field);
    };
    walk(visit, value);
    return object;
  }
}

// ---- reading ----

// Keeps the first complaint; later fields are skipped.
class JsonReader {
 public:
  template <typename T>
  void read(const Json& json, const std::string& path, T& target);

  const std::optional<std::string>& complaint() const { return complaint_; }

 private:
  void expect(bool condition, const std::string& path, const Json& json, const char* wanted) {
    if (condition || complaint_) return;
    std::string found = json_text(json);
    if (found.size() > 60) found = found.substr(0, 57) + "...";
    complaint_ = "field '" + path + "' should be " + wanted + ", but is " + found;
  }

  void read_real(const Json& json, const std::string& path, double& target);
  template <typename T>
  void read_integer(const Json& json, const std::string& path, T& target);
  template <typename T>
  void read_word(const Json& json, const std::string& path, T& target);
  template <typename T>
  void read_object(const Json& json, const std::string& path, T& target);

  std::optional<std::string> complaint_;
};

inline void JsonReader::read_real(const Json& json, const std::string& path, double& target) {
  if (json.is_number()) {
    target = json.get<double>();
  } else if (json == "nan") {
    target = std::numeric_limits<double>::quiet_NaN();
  } else if (json == "inf") {
    target = std::numeric_limits<double>::infinity();
  } else if (json == "-inf") {
    target = -std::numeric_limits<double>::infinity();
  } else {
    expect(false, path, json, "a number, \"nan\", \"inf\" or \"-inf\"");
  }
}

template <typename T>
void JsonReader::read_integer(const Json& json, const std::string& path, T& target) {
  expect(json.is_number_integer(), path, json, "an integer");
  if (complaint_) return;
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  expect(fits, path, json, "within the range of its type");
  if (fits) target = json.get<T>();
}

template <typename T>
void JsonReader::read_word(const Json& json, const std::string& path, T& target) {
  for (const T value : every_value(target))
    if (json == to_string(value)) {
      target = value;
      return;
    }
  expect(false, path, json, "one of the known words");
}

template <typename T>
void JsonReader::read_object(const Json& json, const std::string& path, T& target) {
  expect(json.is_object(), path.empty() ? "(whole record)" : path, json, "an object");
  const auto visit = [&](const char* name, auto& field) {
    if (complaint_) return;
    const std::string inner = path.empty() ? name : path + "." + name;
    const auto found = json.find(name);
    if (found == json.end() && kIsOptional<std::remove_reference_t<decltype(field)>>)
      return;  // a record of an older version: what it did not know was not there
    if (found == json.end())
      complaint_ = "field '" + inner + "' is missing";
    else
      read(*found, inner, field);
  };
  walk(visit, target);
}

template <typename T>
void JsonReader::read(const Json& json, const std::string& path, T& target) {
  if (complaint_) return;
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>) {
    expect(json.is_string(), path, json, "a string");
    if (json.is_string()) target = json.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    expect(json.is_boolean(), path, json, "true or false");
    if (json.is_boolean()) target = json.get<bool>();
  } else if constexpr (std::is_same_v<T, double>) {
    read_real(json, path, target);
  } else if constexpr (std::is_integral_v<T>) {
    read_integer(json, path, target);
  } else if constexpr (std::is_enum_v<T>) {
    read_word(json, path, target);
  } else if constexpr (kIsOptional<T>) {
    target.reset();
    if (!json.is_null()) read(json, path, target.emplace());
  } else if constexpr (kIsVector<T>) {
    expect(json.is_array(), path, json, "an array");
    if (!json.is_array()) return;
    target.clear();
    target.reserve(json.size());
    for (std::size_t i = 0; i < json.size(); ++i)
      read(json[i], path + "[" + std::to_string(i) + "]", target.emplace_back());
  } else if constexpr (kIsMap<T>) {
    expect(json.is_object(), path, json, "an object");
    if (!json.is_object()) return;
    target.clear();
    for (const auto& [name, element] : json.items()) read(element, path + "." + name, target[name]);
  } else {
    read_object(json, path, target);
  }
}

template <typename T>
Result<T> read_noun(const Json& json, const char* noun) {
  T target;
  JsonReader reader;
  reader.read(json, "", target);
  if (reader.complaint())
    return Error{ErrorCode::corrupt, std::string("read ") + noun + " from JSON",
                 *reader.complaint(),
                 "the record was damaged or written by another version of kbeam"};
  return target;
}

}  // namespace kbeam
