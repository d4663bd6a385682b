/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer `golden_momentum`: SGD with momentum.
 *
 *   buf = momentum * buf + grad;   param = param - lr * buf
 */
#include "gradrack/optimizer.h"

#include <stdlib.h>

#include "fill.h"

struct momentum {
  double factor;
};

static int32_t node(const gr_builder_t* b, gr_node_t* node, gr_value_t* out, gr_error_t* err) {
  node->struct_size = sizeof *node;
  node->output_count = 1;
  return b->api->node(b->graph, node, out, err);
}

static int32_t binary(const gr_builder_t* b, const char* op, gr_value_t x, gr_value_t y,
                      gr_value_t* out, gr_error_t* err) {
  const gr_value_t inputs[2] = {x, y};
  gr_node_t made = {0};
  made.op = op;
  made.inputs = inputs;
  made.input_count = 2;
  return node(b, &made, out, err);
}

static int32_t cast(const gr_builder_t* b, gr_value_t x, gr_dtype_t to, gr_value_t* out,
                    gr_error_t* err) {
  gr_attr_t attr = {0};
  gr_node_t made = {0};
  attr.name = "to";
  attr.type = GR_ATTR_INT;
  attr.i = to;
  made.op = "Cast";
  made.inputs = &x;
  made.input_count = 1;
  made.attrs = &attr;
  made.attr_count = 1;
  return node(b, &made, out, err);
}

static int32_t scalar(const gr_builder_t* b, double number, gr_dtype_t dtype, gr_value_t* out,
                      gr_error_t* err) {
  DLTensor tensor;
  gr_value_t wide;
  int32_t status;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = &number;
  tensor.device.device_type = kDLCPU;
  tensor.dtype = gr_dl_dtype(GR_FLOAT64);
  status = b->api->constant(b->graph, &tensor, &wide, err);
  return status != GR_OK ? status : cast(b, wide, dtype, out, err);
}

static int32_t declare_state(void* self, const gr_parameter_info_t* info, gr_state_t* states,
                             uint32_t* count, gr_error_t* err) {
  (void)self;
  (void)err;
  memset(&states[0], 0, sizeof states[0]);
  states[0].name = "golden_buffer";
  states[0].dtype = info->dtype;
  states[0].rank = info->rank;
  memcpy(states[0].dims, info->dims, info->rank * sizeof info->dims[0]);
  states[0].init.kind = GR_INIT_CONSTANT;
  *count = 1;
  return GR_OK;
}

static int32_t build_update(void* self, const gr_builder_t* b, gr_update_t* u, gr_error_t* err) {
  const struct momentum* momentum = self;
  gr_value_t factor, kept, buffer, lr, step;
  int32_t status = scalar(b, momentum->factor, u->info->dtype, &factor, err);
  if (status == GR_OK) status = binary(b, "Mul", factor, u->states[0], &kept, err);
  if (status == GR_OK) status = binary(b, "Add", kept, u->gradient, &buffer, err);
  if (status == GR_OK) status = cast(b, u->lr, u->info->dtype, &lr, err);
  if (status == GR_OK) status = binary(b, "Mul", lr, buffer, &step, err);
  if (status == GR_OK) status = binary(b, "Sub", u->parameter, step, &u->new_parameter, err);
  if (status == GR_OK) u->new_states[0] = buffer;
  return status;
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  gr_optimizer_t table = {0};
  struct momentum* self = malloc(sizeof *self);
  (void)host;
  if (self == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the optimizer");
  self->factor = gr_options_find(options, "momentum")->f;
  table.self = self;
  table.destroy = free;
  table.declare_state = declare_state;
  table.build_update = build_update;
  fill(instance, &table, sizeof table);
  return GR_OK;
}

static const gr_option_t options[] = {
    GR_OPT_FLOAT("lr", "1e-2", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOAT("momentum", "0.9", 0, 1, "share of the last step kept in the next"),
};

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "optimizer",
    .name = "golden_momentum",
    .version = "1.0.0",
    .help = "SGD with momentum, kept as a binary.",
    .options = options,
    .option_count = 2,
    .option_stride = sizeof options[0],
    .create = create,
};

/* Built with headers one minor ahead, the library also offers a kind that today's host never heard
 * of, which the host has to leave aside. */
#if GR_ABI_MAX_MINOR > 0 && defined(GOLDEN_LATER_KIND)
static const gr_factory_t later = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "oracle",
    .name = "golden_oracle",
    .version = "1.0.0",
    .help = "A kind that came later.",
    .option_stride = sizeof(gr_option_t),
    .create = create,
};
GR_PLUGIN("gradrack.golden.optimizer", "1.0.0", &factory, &later);
#else
GR_PLUGIN("gradrack.golden.optimizer", "1.0.0", &factory);
#endif
