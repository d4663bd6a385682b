// SPDX-License-Identifier: Apache-2.0
// The scheduler kind: a pure function from a task graph to an order and a stream per task.
//
// The host checks the answer (complete, respects dependencies, streams in range), inserts events
// where streams meet, and falls back to `sequential` with the reason. Invariant: same request, same
// answer.
#ifndef GRADRACK_SCHEDULER_H_
#define GRADRACK_SCHEDULER_H_

#include "gradrack/plugin.h"
#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gr_task {
  int32_t kind;          ///< GR_KIND_*
  int32_t stage;         ///< index into stage_names; -1: none
  int64_t cost_ns;       ///< estimated or measured
  int64_t bytes_held;    ///< bytes of the outputs this task makes
  int64_t bytes_freed;   ///< bytes whose last reader this task is, in program order
  const uint32_t* deps;  ///< tasks that must finish before; each smaller than this task's index
  uint32_t dep_count;
  uint32_t reserved;
} gr_task_t;

enum {
  GR_BUFFER_KEPT = 1  ///< live to the end of the step, beyond its last user
};

/// Bytes that tasks share. They are live from the start of the first of their users to the end of
/// the last one; one of the users comes before all others, by dependencies. Since 1.1.
typedef struct gr_task_buffer {
  int64_t bytes;
  const uint32_t* users;  ///< tasks that read or write them: sorted, each once, at least one
  uint32_t user_count;
  uint32_t flags;  ///< GR_BUFFER_*
} gr_task_buffer_t;

typedef struct gr_schedule_request {
  uint32_t struct_size;
  uint32_t task_stride;    ///< bytes between two tasks
  const gr_task_t* tasks;  ///< in program order, itself a legal order
  uint32_t task_count;
  uint32_t stage_count;
  const char* const* stage_names;
  uint32_t streams;  ///< available; >= 1
  uint32_t reserved;
  int64_t memory_limit;  ///< bytes of live outputs allowed; 0: none
  /// What is live when, in any order; bytes_held and bytes_freed say it for program order. None
  /// (or a request that ends before them): only bytes_held and bytes_freed are known. Since 1.1.
  const gr_task_buffer_t* buffers;
  uint32_t buffer_count;
  uint32_t buffer_stride;  ///< bytes between two buffers
  /// Time from the end of a task till one of another stream that waits for it starts. Since 1.1.
  int64_t wait_ns;
} gr_schedule_request_t;

typedef struct gr_scheduler {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// Streams that this scheduler wants with these options; >= 1. [plan]
  int32_t (*streams)(void* self, uint32_t* out, gr_error_t* err);
  /// Writes a permutation of task indices to `order` and each task's stream to `stream` (both of
  /// task_count entries; `stream` is indexed by task). [plan]
  int32_t (*schedule)(void* self, const gr_schedule_request_t* request, uint32_t* order,
                      uint32_t* stream, gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_scheduler_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_SCHEDULER_H_
