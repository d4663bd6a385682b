/* SPDX-License-Identifier: Apache-2.0 */
/* The function that abi_call.cpp times: linked into the program, and in a plugin of its own. */
#include "gradrack/lr_schedule.h"

static void destroy(void* self) { (void)self; }

#ifdef BENCH_PLUGIN
static
#endif
    int32_t
    bench_value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  (void)self;
  if (request->struct_size < sizeof *request) return gr_fail(err, GR_VERSION, "request", "old");
  *lr = request->base_lr * (double)(request->max_updates - request->update);
  return GR_OK;
}

#ifdef BENCH_PLUGIN
static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t* table = instance;
  (void)host;
  (void)options;
  (void)err;
  table->destroy = destroy;
  table->value = bench_value;
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "lr_schedule",
    .name = "bench",
    .version = "1.0.0",
    .help = "One multiplication.",
    .option_stride = sizeof(gr_option_t),
    .create = create,
};
GR_PLUGIN("gradrack.bench", "1.0.0", &factory);
#else
void bench_unused(void) { destroy(NULL); }
#endif
