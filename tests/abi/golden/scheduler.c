/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler `golden_latest`: of the tasks that may run, always the one that comes last in program
 * order, all on one stream. An order that no other bundled scheduler gives, so that a run shows
 * that it was used.
 */
#include "gradrack/scheduler.h"

#include <stdlib.h>

#include "fill.h"

static char instance_of_all; /* nothing to keep */

static void destroy(void* self) { (void)self; }

static int32_t streams(void* self, uint32_t* out, gr_error_t* err) {
  (void)self;
  (void)err;
  *out = 1;
  return GR_OK;
}

static const gr_task_t* task_at(const gr_schedule_request_t* request, uint32_t index) {
  const char* at = (const char*)request->tasks + (size_t)index * request->task_stride;
  return (const gr_task_t*)(const void*)at;
}

static int is_ready(const gr_task_t* task, const char* done) {
  for (uint32_t k = 0; k < task->dep_count; ++k) {
    if (!done[task->deps[k]]) return 0;
  }
  return 1;
}

static int32_t schedule(void* self, const gr_schedule_request_t* request, uint32_t* order,
                        uint32_t* stream, gr_error_t* err) {
  char* done = calloc(request->task_count + 1, 1);
  (void)self;
  if (done == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the schedule");
  for (uint32_t placed = 0; placed < request->task_count; ++placed) {
    uint32_t next = request->task_count;
    while (next > 0 && (done[next - 1] || !is_ready(task_at(request, next - 1), done))) --next;
    if (next == 0) {
      free(done);
      return gr_fail(err, GR_INVALID_ARGUMENT, "tasks", "their dependencies have a cycle");
    }
    done[next - 1] = 1;
    order[placed] = next - 1;
    stream[next - 1] = 0;
  }
  free(done);
  return GR_OK;
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_scheduler_t table = {0};
  (void)host;
  (void)options;
  (void)err;
  table.self = &instance_of_all;
  table.destroy = destroy;
  table.streams = streams;
  table.schedule = schedule;
  fill(instance, &table, sizeof table);
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "scheduler",
    .name = "golden_latest",
    .version = "1.0.0",
    .help = "The last ready task first, kept as a binary.",
    .option_stride = sizeof(gr_option_t),
    .create = create,
};

GR_PLUGIN("gradrack.golden.scheduler", "1.0.0", &factory);
