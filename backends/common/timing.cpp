// SPDX-License-Identifier: Apache-2.0
// gr.timing/1: the C face of Mark and Stream::mark. See stream.hpp.
#include "backends/common/timing.hpp"

#include "backends/common/handles.hpp"

namespace gradrack::host {
namespace {

Mark& mark_of(gr_mark_t* mark) { return *reinterpret_cast<Mark*>(mark); }

int32_t create(void*, gr_mark_t** out, gr_error_t* err) noexcept {
  return guarded("create", err, [&] {
    *out = reinterpret_cast<gr_mark_t*>(new Mark);
    return GR_OK;
  });
}

void destroy(void*, gr_mark_t* mark) noexcept {
  if (mark != nullptr) delete &mark_of(mark);
}

int32_t mark(void*, gr_mark_t* mark, gr_stream_t* stream, gr_error_t* err) noexcept {
  return guarded("mark", err, [&]() -> int32_t {
    if (stream_of(stream)->recording() != nullptr) {
      return gr_fail(err, GR_FAILED_PRECONDITION, "mark", "the stream is being recorded");
    }
    stream_of(stream)->mark(&mark_of(mark));
    return GR_OK;
  });
}

int32_t read(void*, gr_mark_t* mark, int64_t* ns, gr_error_t* err) noexcept {
  const int64_t passed = mark_of(mark).ns.load(std::memory_order_acquire);
  if (passed == Mark::kNotPassed) {
    return gr_fail(err, GR_FAILED_PRECONDITION, "read",
                   "the mark was not queued, or its stream has not come there: synchronise it");
  }
  *ns = passed;
  return GR_OK;
}

}  // namespace

const gr_timing_t* timing_extension() {
  static const gr_timing_t table = {
      sizeof table, GR_TIMING_HOST_CLOCK, nullptr, create, destroy, mark, read};
  return &table;
}

}  // namespace gradrack::host
