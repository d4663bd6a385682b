// SPDX-License-Identifier: Apache-2.0
// The C handles of a backend in host memory, and the wall that no exception passes.
#pragma once

#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "backends/common/stream.hpp"
#include "gradrack/backend.h"

namespace gradrack::host {

inline std::shared_ptr<Stream>& stream_of(gr_stream_t* stream) {
  return *reinterpret_cast<std::shared_ptr<Stream>*>(stream);
}
inline Event* event_of(gr_event_t* event) { return reinterpret_cast<Event*>(event); }

/// Runs `body`, mapping exceptions to codes: nothing is thrown across the wall.
template <class Body>
int32_t guarded(const char* call, gr_error_t* err, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return gr_fail(err, GR_OUT_OF_MEMORY, call, "out of host memory");
  } catch (const std::system_error& e) {
    const bool no_thread = e.code() == std::errc::resource_unavailable_try_again;
    if (!no_thread) return gr_fail(err, GR_INTERNAL, call, e.what());
    return gr_fail(err, GR_OUT_OF_MEMORY, call,
                   "no thread more: out of host memory, or at the limit of threads");
  } catch (const std::exception& e) {
    return gr_fail(err, GR_INTERNAL, call, e.what());
  } catch (...) {
    return gr_fail(err, GR_INTERNAL, call, "unknown exception");
  }
}

}  // namespace gradrack::host
