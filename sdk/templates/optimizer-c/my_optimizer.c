/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer `my_optimizer`: gradient descent with momentum in C11, said as nodes of the graph.
 *
 *   buf = momentum * buf + grad;   param = param - lr * buf
 *
 * Invariant: what varies by step (lr) is a value of the graph, so a plan is never rebuilt for it.
 * The first call of the builder that fails ends the update, and its error record goes to the host
 * as it is. Change first: the options, declare_state, and the formula in build_update.
 */
#include <stdlib.h>

#include "gradrack/optimizer.h"

/* One instance a parameter group. */
struct instance {
  double momentum;
};

/* What the YAML may say. The host checks names, types and ranges before `create`. */
static const gr_option_t options_table[] = {
    GR_OPT_FLOAT("lr", "1e-2", 0, INFINITY, "learning rate, before the schedule"),
    GR_OPT_FLOAT("momentum", "0.9", 0, 1, "share of the last step kept in the next"),
};

/* Nodes with one output: every operator that `gradrack ops` lists has inputs and attributes. */
static int32_t node(const gr_builder_t* b, const char* op, const gr_value_t* inputs, uint32_t count,
                    const gr_attr_t* attr, gr_value_t* out, gr_error_t* err) {
  gr_node_t n = {0};
  n.struct_size = sizeof n;
  n.op = op; /* an operator of domain "gradrack" also sets n.domain */
  n.inputs = inputs;
  n.input_count = count;
  n.attrs = attr;
  n.attr_count = attr != NULL ? 1 : 0;
  n.output_count = 1;
  return b->api->node(b->graph, &n, out, err);
}

static int32_t binary(const gr_builder_t* b, const char* op, gr_value_t x, gr_value_t y,
                      gr_value_t* out, gr_error_t* err) {
  const gr_value_t inputs[2] = {x, y};
  return node(b, op, inputs, 2, NULL, out, err);
}

static int32_t cast(const gr_builder_t* b, gr_value_t x, gr_dtype_t to, gr_value_t* out,
                    gr_error_t* err) {
  gr_attr_t attr = {0};
  attr.name = "to";
  attr.type = GR_ATTR_INT;
  attr.i = to;
  return node(b, "Cast", &x, 1, &attr, out, err);
}

/* A constant scalar: enters as float64, so that a run in double keeps its digits. */
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

/* Tensors that live beside the parameter; saved as "NAME.momentum_buffer". */
static int32_t declare_state(void* self, const gr_parameter_info_t* info, gr_state_t* states,
                             uint32_t* count, gr_error_t* err) {
  (void)self;
  (void)err;
  memset(&states[0], 0, sizeof states[0]);
  states[0].name = "momentum_buffer";
  states[0].dtype = info->dtype;
  states[0].rank = info->rank;
  for (uint32_t k = 0; k < info->rank; ++k) states[0].dims[k] = info->dims[k];
  states[0].init.kind = GR_INIT_CONSTANT; /* zeros: init.a is 0 */
  *count = 1;
  return GR_OK;
}

/* Appends the nodes of one update. Nothing runs here; the host commits the results. */
static int32_t build_update(void* self, const gr_builder_t* b, gr_update_t* u, gr_error_t* err) {
  const struct instance* me = self;
  gr_value_t momentum, kept, buffer, lr, step;
  int32_t status = scalar(b, me->momentum, u->info->dtype, &momentum, err);
  if (status == GR_OK) status = binary(b, "Mul", momentum, u->states[0], &kept, err);
  if (status == GR_OK) status = binary(b, "Add", kept, u->gradient, &buffer, err);
  if (status == GR_OK) status = cast(b, u->lr, u->info->dtype, &lr, err);
  if (status == GR_OK) status = binary(b, "Mul", lr, buffer, &step, err);
  if (status == GR_OK) status = binary(b, "Sub", u->parameter, step, &u->new_parameter, err);
  if (status == GR_OK) u->new_states[0] = buffer;
  return status;
}

static void destroy(void* self) { free(self); }

/* `instance` is a gr_optimizer_t as long as the host knows it: fill what fits, say how much. */
static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host;
  gr_optimizer_t* out = instance;
  gr_optimizer_t table = {0};
  const uint32_t host_size = out->struct_size;
  if (!GR_HAS(out, build_update)) return gr_fail(err, GR_VERSION, "optimizer", "the host is old");
  struct instance* self = malloc(sizeof *self);
  if (self == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for the optimizer");
  self->momentum = gr_options_find(options, "momentum")->f;
  table.struct_size = host_size < sizeof table ? host_size : (uint32_t)sizeof table;
  table.self = self;
  table.destroy = destroy;
  table.declare_state = declare_state;
  table.build_update = build_update;
  memcpy(out, &table, table.struct_size);
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "optimizer",
    .name = "my_optimizer", /* `plugin: my_optimizer` */
    .version = "1.0.0",
    .help = "Gradient descent with momentum, in C.",
    .options = options_table,
    .option_count = sizeof options_table / sizeof options_table[0],
    .option_stride = sizeof options_table[0],
    .create = create,
};

/* The one exported symbol. The id is yours: reverse DNS. */
GR_PLUGIN("org.example.my_optimizer", "1.0.0", &factory);
