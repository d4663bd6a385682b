/* SPDX-License-Identifier: Apache-2.0
   lr_schedules whose create goes wrong in memory: the build chooses how with -DFAULT_<NAME>. */
#include "gradrack/gradrack.h"

static int32_t value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  (void)self, (void)err;
  *lr = request->base_lr;
  return GR_OK;
}
static void destroy(void* self) { (void)self; }

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t* table = (gr_lr_schedule_t*)instance;
  (void)host, (void)options, (void)err, (void)value;
#if defined(FAULT_WRITES_PAST_END)
  /* A table that grew in a later SDK, filled without a look at struct_size. */
  (void)memset((char*)instance + sizeof *table, 0, 64);
#endif
  table->self = table;
  table->destroy = destroy;
#if !defined(FAULT_NULL_SLOT)
  table->value = value;
#endif
#if defined(FAULT_SHORT_TABLE)
  /* Filled, but its own account of what it filled leaves the last function out. */
  table->struct_size = offsetof(gr_lr_schedule_t, value);
#endif
  return GR_OK;
}

static const gr_factory_t writer = {sizeof(gr_factory_t),
                                    0,
                                    "lr_schedule",
                                    "writer",
                                    "1.0.0",
                                    "for tests",
                                    NULL,
                                    0,
                                    0,
                                    NULL,
                                    create};

GR_PLUGIN("test.writer", "1.0.0", &writer);
