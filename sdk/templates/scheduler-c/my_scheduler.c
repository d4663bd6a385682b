/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler `my_scheduler`: list scheduling in C11, what is on the longest path first.
 *
 * The rank of a task is its cost plus the largest rank of what needs it. Again and again the ready
 * task of largest rank goes to the stream that is free first. Invariant: a task comes after all
 * that it depends on; equal requests get equal answers. Change first: `rank`, or the choice of
 * stream. It does not plan for memory: an order that holds more than memory_limit is refused, and
 * the host takes program order.
 */
#include <stdlib.h>

#include "gradrack/scheduler.h"

struct instance {
  uint32_t streams;
};
/* What the YAML may say. The host checks names, types and ranges before `create`. */
static const gr_option_t options_table[] = {
    GR_OPT_INT("streams", "2", 1, 64, "streams to spread the tasks over"),
};

static const gr_task_t* task_at(const gr_schedule_request_t* r, uint32_t k) {
  return (const gr_task_t*)(const void*)((const char*)r->tasks + (size_t)k * r->task_stride);
}

static int32_t streams(void* self, uint32_t* out, gr_error_t* err) {
  (void)err;
  *out = ((struct instance*)self)->streams;
  return GR_OK;
}

/* Of the tasks that are not placed (end < 0) and wait for none. Quadratic: for some thousands. */
static uint32_t best_ready(const gr_schedule_request_t* r, const int64_t* rank,
                           const int64_t* end) {
  uint32_t best = r->task_count;
  for (uint32_t k = 0; k < r->task_count; ++k) {
    const gr_task_t* task = task_at(r, k);
    int ready = end[k] < 0;
    for (uint32_t d = 0; ready && d < task->dep_count; ++d) ready = end[task->deps[d]] >= 0;
    if (ready && (best == r->task_count || rank[k] > rank[best])) best = k;
  }
  return best;
}

static int32_t schedule(void* self, const gr_schedule_request_t* r, uint32_t* order,
                        uint32_t* stream, gr_error_t* err) {
  (void)self;
  int64_t* rank = calloc((size_t)r->task_count * 2 + r->streams, sizeof *rank);
  if (rank == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the ranks");
  int64_t *end = rank + r->task_count, *stream_free = end + r->task_count;
  int64_t live = 0, peak = 0;                  /* bytes of outputs */
  for (uint32_t k = r->task_count; k-- > 0;) { /* dependencies have smaller indices */
    const gr_task_t* task = task_at(r, k);
    rank[k] += task->cost_ns;
    for (uint32_t d = 0; d < task->dep_count; ++d) {
      if (rank[task->deps[d]] < rank[k]) rank[task->deps[d]] = rank[k];
    }
    end[k] = -1;
  }
  for (uint32_t place = 0; place < r->task_count; ++place) {
    const uint32_t k = order[place] = best_ready(r, rank, end);
    const gr_task_t* task = task_at(r, k);
    uint32_t s = 0; /* the stream that is free first */
    for (uint32_t other = 1; other < r->streams; ++other) {
      if (stream_free[other] < stream_free[s]) s = other;
    }
    int64_t start = stream_free[s];
    for (uint32_t d = 0; d < task->dep_count; ++d) {
      if (start < end[task->deps[d]]) start = end[task->deps[d]];
    }
    stream[k] = s;
    stream_free[s] = end[k] = start + task->cost_ns;
    live += task->bytes_held;
    if (live > peak) peak = live;
    live -= task->bytes_freed;
  }
  free(rank);
  if (r->memory_limit == 0 || peak <= r->memory_limit) return GR_OK;
  return gr_fail(err, GR_UNSUPPORTED, "memory_limit", "this order holds more than is allowed");
}

/* `instance` is a gr_scheduler_t as long as the host knows it: fill what fits. */
static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host;
  gr_scheduler_t* out = instance;
  gr_scheduler_t table = {0};
  struct instance* self = malloc(sizeof *self);
  if (self == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the scheduler");
  self->streams = (uint32_t)gr_options_find(options, "streams")->i;
  table.struct_size = out->struct_size < sizeof table ? out->struct_size : (uint32_t)sizeof table;
  table.self = self;
  table.destroy = free;
  table.streams = streams;
  table.schedule = schedule;
  memcpy(out, &table, table.struct_size);
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "scheduler",
    .name = "my_scheduler",
    .version = "1.0.0",
    .help = "Longest remaining path first, in C.",
    .options = options_table,
    .option_count = 1,
    .option_stride = sizeof options_table[0],
    .create = create,
};

GR_PLUGIN("org.example.my_scheduler", "1.0.0", &factory);
