// SPDX-License-Identifier: Apache-2.0
// gr.capture/1, an extension of a backend: record the calls of a step once, replay them as one.
//
// `backend->get_extension(backend->self, GR_EXT_CAPTURE)` gives the table or NULL; it is valid as
// long as the backend. Between begin and end, calls on the named streams are kept instead of done:
// launch and copy, and event_record and stream_wait where GR_CAPTURE_EVENTS is set. A replay does
// to the streams what those calls would do now. Invariant: a recording holds addresses, no bytes:
// inputs, scalars and parameters are read when it runs, so nothing has to be updated between two
// replays. Tensors, workspaces, kernels and memory named in it stay valid until it is destroyed. A
// backend that cannot keep one of the calls answers it with GR_UNSUPPORTED; the host then launches
// that one by itself each time, and says so.
#ifndef GRADRACK_CAPTURE_H_
#define GRADRACK_CAPTURE_H_

#include "gradrack/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_CAPTURE "gr.capture/1"

/// The backend's: calls that were kept.
typedef struct gr_recording gr_recording_t;

/// Bits of gr_capture.flags.
enum {
  /// Several streams may be recorded together, with event_record and stream_wait among them;
  /// without it one at a time, with neither.
  GR_CAPTURE_EVENTS = 1
};

typedef struct gr_capture {
  uint32_t struct_size;
  uint32_t flags;  ///< GR_CAPTURE_* or-ed
  void* self;
  /// From here on keeps what is called on these streams (each once, at least one). Work queued
  /// before still runs. GR_INVALID_ARGUMENT: more streams than the flags allow;
  /// GR_FAILED_PRECONDITION: one of them is being recorded already. [exec]
  int32_t (*begin)(void* self, gr_stream_t* const* streams, uint32_t count, gr_error_t* err);
  /// Ends what begin began on this stream and the ones named with it, and gives the recording; with
  /// `out` NULL drops it. The streams then run calls again, after an error too. Events recorded in
  /// between concern the replays alone: a wait in between for any other event is
  /// GR_FAILED_PRECONDITION, and so are end without begin, synchronising a stream that is being
  /// recorded, and an event of its recording. [exec]
  int32_t (*end)(void* self, gr_stream_t* stream, gr_recording_t** out, gr_error_t* err);
  /// Queues the recording once, on as many streams as it was made of, in that order; they may be
  /// others. Work that follows on any of them comes after its part of the recording. Allocates
  /// nothing. A replay may be queued while one of before runs, on the same streams alone. [exec]
  int32_t (*replay)(void* self, gr_recording_t* recording, gr_stream_t* const* streams,
                    uint32_t count, gr_error_t* err);
  /// Ends a recording that no stream is running. [plan]
  void (*destroy)(void* self, gr_recording_t* recording);
} gr_capture_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_CAPTURE_H_
