/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer `sgd_c`: momentum SGD in plain C11, against the C headers alone.
 *
 *   buf = momentum * buf + grad;   param = param - lr * buf
 *
 * Shows that a plugin needs no C++. Invariant: the first failing call of the builder ends the
 * update, and its error record goes to the host unchanged.
 */
#include <stdlib.h>

#include "gradrack/optimizer.h"

struct sgd {
  double momentum;
};

static int32_t binary(const gr_builder_t* b, const char* op, gr_value_t x, gr_value_t y,
                      gr_value_t* out, gr_error_t* err) {
  const gr_value_t inputs[2] = {x, y};
  gr_node_t node = {0};
  node.struct_size = sizeof node;
  node.op = op;
  node.inputs = inputs;
  node.input_count = 2;
  node.output_count = 1;
  return b->api->node(b->graph, &node, out, err);
}

static int32_t cast(const gr_builder_t* b, gr_value_t x, gr_dtype_t to, gr_value_t* out,
                    gr_error_t* err) {
  gr_attr_t attr = {0};
  attr.name = "to";
  attr.type = GR_ATTR_INT;
  attr.i = to;
  gr_node_t node = {0};
  node.struct_size = sizeof node;
  node.op = "Cast";
  node.inputs = &x;
  node.input_count = 1;
  node.attrs = &attr;
  node.attr_count = 1;
  node.output_count = 1;
  return b->api->node(b->graph, &node, out, err);
}

/* A scalar constant of the parameter's dtype. */
static int32_t scalar(const gr_builder_t* b, double number, gr_dtype_t dtype, gr_value_t* out,
                      gr_error_t* err) {
  DLTensor tensor = {0};
  tensor.data = &number;
  tensor.device.device_type = kDLCPU;
  tensor.dtype = gr_dl_dtype(GR_FLOAT64);
  gr_value_t wide;
  const int32_t status = b->api->constant(b->graph, &tensor, &wide, err);
  return status != GR_OK ? status : cast(b, wide, dtype, out, err);
}

static int32_t declare_state(void* self, const gr_parameter_info_t* info, gr_state_t* states,
                             uint32_t* count, gr_error_t* err) {
  (void)self;
  (void)err;
  memset(&states[0], 0, sizeof states[0]);
  states[0].name = "momentum_buffer";
  states[0].dtype = info->dtype;
  states[0].rank = info->rank;
  memcpy(states[0].dims, info->dims, info->rank * sizeof info->dims[0]);
  states[0].init.kind = GR_INIT_CONSTANT;
  *count = 1;
  return GR_OK;
}

static int32_t build_update(void* self, const gr_builder_t* b, gr_update_t* u, gr_error_t* err) {
  const struct sgd* sgd = self;
  gr_value_t momentum, kept, buffer, lr, step;
  int32_t status = scalar(b, sgd->momentum, u->info->dtype, &momentum, err);
  if (status == GR_OK) status = binary(b, "Mul", momentum, u->states[0], &kept, err);
  if (status == GR_OK) status = binary(b, "Add", kept, u->gradient, &buffer, err);
  if (status == GR_OK) status = cast(b, u->lr, u->info->dtype, &lr, err);
  if (status == GR_OK) status = binary(b, "Mul", lr, buffer, &step, err);
  if (status == GR_OK) status = binary(b, "Sub", u->parameter, step, &u->new_parameter, err);
  if (status == GR_OK) u->new_states[0] = buffer;
  return status;
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host;
  struct sgd* self = malloc(sizeof *self);
  if (self == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the optimizer");
  self->momentum = gr_options_find(options, "momentum")->f;
  gr_optimizer_t table = {0};
  uint32_t host_size;
  memcpy(&host_size, instance, sizeof host_size);
  table.struct_size = host_size < sizeof table ? host_size : (uint32_t)sizeof table;
  table.self = self;
  table.destroy = free;
  table.declare_state = declare_state;
  table.build_update = build_update;
  memcpy(instance, &table, table.struct_size);
  return GR_OK;
}

static const gr_option_t options[] = {
    GR_OPT_FLOAT("lr", "1e-2", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOAT("momentum", "0.9", 0, 1, "share of the last step kept in the next"),
};

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "optimizer",
    .name = "sgd_c",
    .version = "1.0.0",
    .help = "Momentum SGD written in C.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .option_stride = sizeof options[0],
    .create = create,
};

GR_PLUGIN("org.example.sgd_c", "1.0.0", &factory);
