/* SPDX-License-Identifier: Apache-2.0 */
/* lr_schedule `golden_linear`: from the base rate down to `end` times it, update by update. */
#include "gradrack/lr_schedule.h"

#include <stdlib.h>

#include "fill.h"

struct linear {
  double end;
};

static int32_t value(void* self, const gr_lr_request_t* request, double* lr, gr_error_t* err) {
  const struct linear* linear = self;
  const double done = (double)request->update / (double)request->max_updates;
  (void)err;
  *lr = request->base_lr * (1 + done * (linear->end - 1));
  return GR_OK;
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_lr_schedule_t table = {0};
  struct linear* self = malloc(sizeof *self);
  if (self == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the schedule");
  self->end = gr_options_find(options, "end")->f;
  host->log(host->context, GR_LOG_INFO, "golden_linear is made");
  table.self = self;
  table.destroy = free;
  table.value = value;
  fill(instance, &table, sizeof table);
  return GR_OK;
}

static const gr_option_t options[] = {
    GR_OPT_FLOAT("end", "0.1", 0, 1, "share of the base rate that is left at the end"),
};

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "lr_schedule",
    .name = "golden_linear",
    .version = "1.0.0",
    .help = "Linear decay, kept as a binary.",
    .options = options,
    .option_count = 1,
    .option_stride = sizeof options[0],
    .create = create,
};

GR_PLUGIN("gradrack.golden.lr_schedule", "1.0.0", &factory);
