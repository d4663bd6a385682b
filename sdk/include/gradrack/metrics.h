// SPDX-License-Identifier: Apache-2.0
// The metrics kind: sinks that write a run's figures where people and programs look for them.
//
// The host keeps its own record, one line of JSON each, whatever sinks there are; a sink gets the
// same records under the same names. Invariant: a sink never ends a run. Whatever a call answers
// but GR_OK is said once, and a sink whose `open` failed gets no records. It keeps no list that
// grows with the run.
#ifndef GRADRACK_METRICS_H_
#define GRADRACK_METRICS_H_

#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The run that is to be recorded. Texts live until `open` returns. Since 1.1.
typedef struct gr_metrics_run {
  uint32_t struct_size;
  uint32_t flags;
  const char* folder;  ///< of the run's files; there and writable; no "/" at its end
  const char* name;    ///< of the run
  int64_t step;        ///< updates already made: 0, or where an earlier run is taken up again
  int64_t max_steps;   ///< the run ends after so many
} gr_metrics_run_t;

/// One figure. Frozen.
typedef struct gr_metric {
  const char* name;  ///< "train/loss", "eval/loss", "lr", "memory/peak_bytes"; UTF-8
  double value;      ///< may be NaN or infinite
} gr_metric_t;

/// Figures after `step` updates. All pointers live until `record` returns.
typedef struct gr_metrics_record {
  uint32_t struct_size;
  uint32_t value_count;
  int64_t step;               ///< never smaller than the record's before
  int64_t tokens;             ///< seen in training so far
  double time_s;              ///< seconds since 1970-01-01 UTC
  const gr_metric_t* values;  ///< different names
} gr_metrics_record_t;

/// Something that happened, in words.
typedef struct gr_metrics_event {
  uint32_t struct_size;
  int32_t level;        ///< GR_LOG_*
  int64_t step;         ///< updates made when it was handed over
  double time_s;        ///< when it happened
  const char* kind;     ///< "evaluation", "fallback", ...: a word for machines
  const char* message;  ///< a sentence for people; UTF-8
} gr_metrics_event_t;

/// Order of calls: open, then record, event and flush as they come, close; then destroy, or open
/// again for another run. destroy may follow any of them. They come between steps, never during
/// one, so be quick.
typedef struct gr_metrics {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`; what was not flushed may be lost. [main]
  void (*destroy)(void* self);
  /// Begins, or goes on with, the record of a run. Records of steps beyond `run->step` that are
  /// there already were lost with the run that made them: whoever reads must not see them beside
  /// those to come. GR_IO: it cannot be written, with path and reason. [main]
  int32_t (*open)(void* self, const gr_metrics_run_t* run, gr_error_t* err);
  /// Takes a record. A value that is not finite is no reason to fail. [main]
  int32_t (*record)(void* self, const gr_metrics_record_t* record, gr_error_t* err);
  /// (optional) Takes an event. [main]
  int32_t (*event)(void* self, const gr_metrics_event_t* event, gr_error_t* err);
  /// (optional) Gives what was recorded to the system, so that others can read it. Comes after
  /// evaluations and checkpoints. [main]
  int32_t (*flush)(void* self, gr_error_t* err);
  /// (optional) The run has ended: everything is on disk and closed when it returns. [main]
  int32_t (*close)(void* self, gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_metrics_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_METRICS_H_
