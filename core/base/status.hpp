// SPDX-License-Identifier: Apache-2.0
// Status and Result<T>: how core reports what can go wrong at run time.
//
// Base of the flow; used by everything. Codes are those of gradrack/status.h, so an error crosses
// the plugin wall without translation. Invariant: core throws nothing; a Status is never dropped in
// silence
// ([[nodiscard]]). GR_CHECK is for programmer errors only.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gradrack/status.h"

namespace gradrack {

/// Which part of a command an error belongs to: the same code ("not found") means other things to
/// the user for a key, a plugin and a data file. exit_codes.hpp reads it.
enum class Area { kRun, kConfig, kPlugin };

/// Outcome of a call: GR_OK, or a code with a sentence for a person.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(int32_t code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == GR_OK; }
  int32_t code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error with `where` in front: "where: message".
  Status with_context(std::string_view where) const {
    if (ok()) return *this;
    return Status(code_, std::string(where) + ": " + message_).in_area(area_);
  }

  Area area() const { return area_; }
  Status in_area(Area area) const {
    Status copy = *this;
    copy.area_ = area;
    return copy;
  }

 private:
  int32_t code_ = GR_OK;
  Area area_ = Area::kRun;
  std::string message_;
};

inline Status invalid_argument(std::string message) {
  return {GR_INVALID_ARGUMENT, std::move(message)};
}
inline Status unsupported(std::string message) { return {GR_UNSUPPORTED, std::move(message)}; }
inline Status not_found(std::string message) { return {GR_NOT_FOUND, std::move(message)}; }
inline Status internal_error(std::string message) { return {GR_INTERNAL, std::move(message)}; }
inline Status io_error(std::string message) { return {GR_IO, std::move(message)}; }

/// A plugin's answer as a Status; the field at fault goes in front of the message. A text without
/// an end is cut where its member ends; a status that nobody knows is GR_INTERNAL.
inline Status status_from(int32_t code, const gr_error_t& err) {
  if (code == GR_OK) return {};
  std::string text(err.field, strnlen(err.field, sizeof err.field));
  if (!text.empty()) text += ": ";
  const size_t length = strnlen(err.message, sizeof err.message);
  text += length > 0 ? std::string_view(err.message, length) : "no message given";
  if (code > GR_OK && code <= GR_INTERNAL) return {code, std::move(text)};
  return {GR_INTERNAL, "it returned the unknown status " + std::to_string(code) + ": " + text};
}

/// Writes a Status into a caller-owned record and returns its code.
inline int32_t status_to(const Status& status, gr_error_t* err) {
  return status.ok() ? static_cast<int32_t>(GR_OK)
                     : gr_fail(err, status.code(), "", status.message().c_str());
}

/// A value or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace gradrack

#define GR_CONCAT_INNER(a, b) a##b
#define GR_CONCAT(a, b) GR_CONCAT_INNER(a, b)

/// Returns the error of `expression` (a Status) from the enclosing function.
#define GR_TRY(expression) GR_TRY_INNER(GR_CONCAT(gr_status_, __COUNTER__), expression)
#define GR_TRY_INNER(status_name, expression)      \
  do {                                             \
    ::gradrack::Status status_name = (expression); \
    if (!status_name.ok()) return status_name;     \
  } while (false)

/// `GR_ASSIGN(auto x, f())`: x gets the value of a Result, or its error is returned.
#define GR_ASSIGN(declaration, expression) \
  GR_ASSIGN_INNER(GR_CONCAT(gr_result_, __COUNTER__), declaration, expression)
#define GR_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                            \
  if (!result.ok()) return result.status();              \
  declaration = std::move(*result)

/// Ends the program on a programmer error; never for what input can cause.
#define GR_CHECK(condition)                                                                   \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      std::fprintf(stderr, "%s:%d: bug: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                           \
    }                                                                                         \
  } while (false)
