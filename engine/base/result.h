// Result<T>: what a function returns when the engine itself may be unable to work (disk, compiler,
// database). A failing candidate is not an error: it is a Verdict.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace kbeam {

enum class ErrorCode { bad_input, not_found, io, busy, unavailable, corrupt, internal };

// Says what was attempted on what, what happened, and what to do about it.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string attempted;  // "open archive runs/7f/archive.sqlite"
  std::string happened;   // "the file is locked by another kbeam"
  std::string advice;     // "wait for it, or choose another --dir"

  std::string text() const;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  T& value() & {
    CHECK(ok(), "value() of a failed Result: test ok() first");
    return std::get<T>(state_);
  }
  const T& value() const& {
    CHECK(ok(), "value() of a failed Result: test ok() first");
    return std::get<T>(state_);
  }
  // By value: `for (auto& x : f().value())` must not walk what died with the temporary.
  T value() && {
    CHECK(ok(), "value() of a failed Result: test ok() first");
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace kbeam

// RETURN_IF_ERROR(save(file)); hands an error of a Result to the caller.
#define RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                     \
    if (auto kbeam_result = (expression); !kbeam_result.ok()) return kbeam_result.error(); \
  } while (false)

// ASSIGN_OR_RETURN(auto text, read_file(path));
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_AT(target, expression, KBEAM_JOIN(kbeam_result_, __LINE__))
#define ASSIGN_OR_RETURN_AT(target, expression, temporary) \
  auto temporary = (expression);                           \
  if (!temporary.ok()) return temporary.error();           \
  target = std::move(temporary).value()
#define KBEAM_JOIN(a, b) KBEAM_JOIN_INNER(a, b)
#define KBEAM_JOIN_INNER(a, b) a##b
