// SPDX-License-Identifier: Apache-2.0
// Faults of gr.timing/1, which take the place of a function of the right table: for backend.cpp.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "backends/common/stream.hpp"
#include "gradrack/backend.h"
#include "gradrack/timing.h"

struct FaultyTiming {
  static inline gr_backend_t right = {};  // the same for every instance
  static inline gr_timing_t table = {};
  static inline gr_timing_t right_timing = {};
  static inline std::map<gr_mark_t*, gr_stream_t*> stream_of;
  static inline std::map<gr_stream_t*, int64_t> first_of;

  static gradrack::host::Mark& mark_of(gr_mark_t* mark) {
    return *reinterpret_cast<gradrack::host::Mark*>(mark);
  }

  // The host's time of the call, as by somebody who takes a call for the work.
  static int32_t mark_at_once(void*, gr_mark_t* mark, gr_stream_t*, gr_error_t*) noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    mark_of(mark).ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    return GR_OK;
  }
  static int32_t mark_once(void* self, gr_mark_t* mark, gr_stream_t* stream,
                           gr_error_t* err) noexcept {
    if (mark_of(mark).ns != gradrack::host::Mark::kNotPassed) return GR_OK;
    return right_timing.mark(self, mark, stream, err);
  }
  static int32_t mark_noted(void* self, gr_mark_t* mark, gr_stream_t* stream,
                            gr_error_t* err) noexcept {
    stream_of[mark] = stream;
    return right_timing.mark(self, mark, stream, err);
  }
  // Each stream counts from its own first mark.
  static int32_t read_by_stream(void* self, gr_mark_t* mark, int64_t* ns,
                                gr_error_t* err) noexcept {
    const int32_t code = right_timing.read(self, mark, ns, err);
    if (code == GR_OK) *ns -= first_of.emplace(stream_of[mark], *ns).first->second;
    return code;
  }
  static int32_t read_microseconds(void* self, gr_mark_t* mark, int64_t* ns,
                                   gr_error_t* err) noexcept {
    const int32_t code = right_timing.read(self, mark, ns, err);
    if (code == GR_OK) *ns /= 1000;
    return code;
  }
  static int32_t read_anything(void* self, gr_mark_t* mark, int64_t* ns, gr_error_t* err) noexcept {
    if (right_timing.read(self, mark, ns, err) != GR_OK) *ns = 0;
    return GR_OK;
  }

  static const void* extension(void* self, const char* id) noexcept {
    return std::strcmp(id, GR_EXT_TIMING) == 0 ? &table : right.get_extension(self, id);
  }

  static void spoil(const std::string& fault, gr_backend_t* backend) {
    right = *backend;
    right_timing = *static_cast<const gr_timing_t*>(right.get_extension(right.self, GR_EXT_TIMING));
    table = right_timing;
    if (fault == "mark_at_once") table.mark = mark_at_once;
    if (fault == "mark_keeps_first") table.mark = mark_once;
    if (fault == "mark_clock_by_stream") {
      table.mark = mark_noted;
      table.read = read_by_stream;
    }
    if (fault == "marks_in_microseconds") table.read = read_microseconds;
    if (fault == "reads_unmarked") table.read = read_anything;
    backend->get_extension = extension;
  }
};
