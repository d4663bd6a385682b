// SPDX-License-Identifier: Apache-2.0
// gr.timing/1, an extension of a backend: when the work of a stream was done, by the device's
// clock.
//
// `backend->get_extension(backend->self, GR_EXT_TIMING)` gives the table or NULL; it is valid as
// long as the backend. The host queues a mark before and behind a task and reads both when the
// streams are empty: task times for schedulers, and timelines of a step. Invariant: all marks of a
// backend count from one moment, whatever their streams, so that two of them can be subtracted; a
// mark changes no result. A backend without it is trained with as ever, on estimated times.
#ifndef GRADRACK_TIMING_H_
#define GRADRACK_TIMING_H_

#include "gradrack/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_TIMING "gr.timing/1"

/// The backend's: a moment in the work of a stream.
typedef struct gr_mark gr_mark_t;

/// Bits of gr_timing.flags.
enum {
  /// Times are those of the host's monotonic clock (CLOCK_MONOTONIC); without it they count from a
  /// moment that the backend chooses, and the host finds out what lies between the two.
  GR_TIMING_HOST_CLOCK = 1
};

typedef struct gr_timing {
  uint32_t struct_size;
  uint32_t flags;  ///< GR_TIMING_* or-ed
  void* self;
  /// Makes a mark that has no time yet. [plan]
  int32_t (*create)(void* self, gr_mark_t** out, gr_error_t* err);
  /// Ends a mark that no stream has still to pass. [plan]
  void (*destroy)(void* self, gr_mark_t* mark);
  /// The mark's time is the moment at which all work queued on `stream` so far has finished and
  /// none that follows has begun; work that is skipped after an error finishes too. A mark that was
  /// passed may be queued again. Allocates nothing. GR_FAILED_PRECONDITION: the stream is being
  /// recorded. [exec]
  int32_t (*mark)(void* self, gr_mark_t* mark, gr_stream_t* stream, gr_error_t* err);
  /// The time of a mark's last queueing, in ns, once its stream was synchronised.
  /// GR_FAILED_PRECONDITION: it was never queued, or its stream has not come there. [exec]
  int32_t (*read)(void* self, gr_mark_t* mark, int64_t* ns, gr_error_t* err);
} gr_timing_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_TIMING_H_
