// SPDX-License-Identifier: Apache-2.0
// Errors inside a C++ plugin: throw Error, and the wall turns it into a status and a gr_error_t.
//
// First header of the C++ wrapper. Invariant: guarded() lets nothing out: no exception of any type
// crosses the C ABI. It does not log and does not decide what the host does next; the code does
// (only GR_UNSUPPORTED makes the host fall back).
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "gradrack/status.h"

namespace gradrack::sdk {

/// Joins anything that can be streamed: text("got ", 3, ", wanted ", 4).
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios_base::badbit);  // else a stream without memory just stops
  (out << ... << parts);
  return out.str();
}

/// What plugin code throws: a status code, the option or member at fault ("" if none), a sentence.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, std::string field, const std::string& message)
      : std::runtime_error(message), code_(code), field_(std::move(field)) {}

  int32_t code() const { return code_; }
  const std::string& field() const { return field_; }

 private:
  int32_t code_;
  std::string field_;
};

/// Throws an Error that `condition` should have prevented; the message is made only then.
template <typename... Parts>
void require(bool condition, int32_t code, const char* field, const Parts&... parts) {
  if (!condition) throw Error(code, field, text(parts...));
}

/// Throws what a call of the host answered, unless it is GR_OK.
inline void check(int32_t status, const gr_error_t& err) {
  if (status != GR_OK) throw Error(status, err.field, err.message);
}

/// Runs `body` behind the wall and says how it went. std::bad_alloc becomes GR_OUT_OF_MEMORY, any
/// other exception GR_INTERNAL with its text. [any]
template <typename Body>
int32_t guarded(gr_error_t* err, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return GR_OK;
  } catch (const Error& e) {
    const int32_t code = e.code() == GR_OK ? int32_t{GR_INTERNAL} : e.code();
    return gr_fail(err, code, e.field().c_str(), e.what());
  } catch (const std::bad_alloc&) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "", "the plugin ran out of memory");
  } catch (const std::exception& e) {
    return gr_fail(err, GR_INTERNAL, "", e.what());
  } catch (...) {
    return gr_fail(err, GR_INTERNAL, "", "the plugin threw something that is not a std::exception");
  }
}

}  // namespace gradrack::sdk
