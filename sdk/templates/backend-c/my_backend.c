/* SPDX-License-Identifier: Apache-2.0 */
/* Backend `my_backend`: a device in host memory that runs a few float32 operators in plain loops.
 *
 * The host asks claim about every node, prepare for a kernel of each claimed one, and calls launch
 * in every step. What is not claimed goes to the next backend of the chain or is taken apart into
 * operators that are (`gradrack ops`). Memory and streams are in device.c. Invariant: a kernel
 * depends on its inputs and attributes alone, so equal launches give equal bits.
 * Change first: a row of `operators`, its rule in `refusal`, its loop. Then device.c.
 */
#include <stdlib.h>

#include "device.h"
#include "gradrack/backend.h"

struct gr_kernel {
  void (*run)(const struct gr_kernel*, const float* a, const float* b, float* out);
  int32_t input[2];             /* place of node input k among the inputs of launch; -1: none */
  int64_t count;                /* elements of the output */
  int64_t step[2];              /* 1: input k moves with the output; 0: it is one number */
  int64_t rows, inner, columns; /* FusedMatMul: [rows, inner] x [inner, columns] */
  int64_t trans_a, trans_b;
  double alpha;
};

/* The loops. */

#define BINARY(name, operator)                                                                    \
  static void name(const gr_kernel_t* k, const float* a, const float* b, float* out) {            \
    for (int64_t i = 0; i < k->count; ++i) out[i] = a[i * k->step[0]] operator b[i * k->step[1]]; \
  }
BINARY(run_add, +)
BINARY(run_sub, -)
BINARY(run_mul, *)
BINARY(run_div, /)

#define UNARY(name, expression)                                                        \
  static void name(const gr_kernel_t* k, const float* a, const float* b, float* out) { \
    (void)b;                                                                           \
    for (int64_t i = 0; i < k->count; ++i) {                                           \
      const float x = a[i];                                                            \
      out[i] = expression;                                                             \
    }                                                                                  \
  }
UNARY(run_neg, -x)
UNARY(run_relu, x < 0 ? 0 : x) /* a NaN stays */
UNARY(run_sqrt, sqrtf(x))
UNARY(run_exp, expf(x))

/* Y = alpha op(A) op(B): one order of additions for each element, whatever the stream. */
static void run_matmul(const gr_kernel_t* k, const float* a, const float* b, float* out) {
  for (int64_t i = 0; i < k->rows; ++i) {
    for (int64_t j = 0; j < k->columns; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k->inner; ++p) {
        sum += (double)a[k->trans_a ? p * k->rows + i : i * k->inner + p] *
               (double)b[k->trans_b ? j * k->inner + p : p * k->columns + j];
      }
      out[i * k->columns + j] = (float)(k->alpha * sum);
    }
  }
}

static const struct row {
  const char* domain;
  const char* op;
  uint32_t inputs;
  void (*run)(const gr_kernel_t*, const float*, const float*, float*);
} operators[] = {
    {"", "Add", 2, run_add},   {"", "Sub", 2, run_sub}, {"", "Mul", 2, run_mul},
    {"", "Div", 2, run_div},   {"", "Neg", 1, run_neg}, {"", "Relu", 1, run_relu},
    {"", "Sqrt", 1, run_sqrt}, {"", "Exp", 1, run_exp}, {"gradrack", "FusedMatMul", 2, run_matmul},
};

/* Claims. */

static int64_t count_of(const gr_value_type_t* v) {
  int64_t count = 1;
  for (uint32_t k = 0; k < v->rank; ++k) count *= v->dims[k];
  return count;
}

static int same_dims(const gr_value_type_t* a, const gr_value_type_t* b) {
  if (a->rank != b->rank) return 0;
  for (uint32_t k = 0; k < a->rank; ++k) {
    if (a->dims[k] != b->dims[k]) return 0;
  }
  return 1;
}

static const struct row* find_row(const gr_node_view_t* node) {
  const char* domain = node->domain != NULL ? node->domain : ""; /* "": ONNX's own operators */
  for (size_t k = 0; k < sizeof operators / sizeof operators[0]; ++k) {
    const struct row* row = &operators[k];
    if (strcmp(node->op, row->op) == 0 && strcmp(domain, row->domain) == 0) return row;
  }
  return NULL;
}

/* NULL: this node runs here. Else the reason, which people read in the host's report. */
static const char* refusal(const gr_node_view_t* node) {
  const struct row* row = find_row(node);
  if (row == NULL) return "no kernel";
  if (node->input_count != row->inputs || node->output_count != 1) return "number of inputs";
  if (node->outputs[0].dtype != GR_FLOAT32) return "the output is not float32";
  for (uint32_t k = 0; k < row->inputs; ++k) {
    const gr_value_type_t* input = &node->inputs[k];
    if (input->dtype != GR_FLOAT32) return "an input is not float32";
    if (row->run == run_matmul) {
      if (input->rank != 2) return "matrices of rank 2 alone";
    } else if (!same_dims(input, &node->outputs[0]) && count_of(input) != 1) {
      return "broadcasts of one number alone";
    }
  }
  return NULL;
}

static int32_t claim(void* self, const gr_node_view_t* nodes, uint32_t node_stride, uint32_t count,
                     gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) {
  (void)self;
  (void)err;
  for (uint32_t k = 0; k < count; ++k) { /* newer hosts have longer structs: walk by stride */
    const void* node = (const char*)nodes + (size_t)k * node_stride;
    void* place = (char*)claims + (size_t)k * claim_stride;
    gr_claim_t* out = place;
    const char* reason = refusal(node);
    out->verdict = reason == NULL ? GR_CLAIM_YES : GR_CLAIM_NO;
    out->group = -1; /* a kernel for each node */
    out->cost_ns = 0;
    (void)snprintf(out->reason, sizeof out->reason, "%s", reason == NULL ? "" : reason);
  }
  return GR_OK;
}

/* Kernels. */

static const gr_attr_t* find_attr(const gr_node_view_t* node, const char* name) {
  for (uint32_t k = 0; k < node->attr_count; ++k) {
    if (strcmp(node->attrs[k].name, name) == 0) return &node->attrs[k];
  }
  return NULL; /* for what has no default; the host fills in the others */
}

static void size_matmul(const gr_node_view_t* node, gr_kernel_t* kernel) {
  const gr_attr_t *ta = find_attr(node, "transA"), *tb = find_attr(node, "transB");
  const gr_attr_t* alpha = find_attr(node, "alpha");
  kernel->trans_a = ta != NULL ? ta->i : 0;
  kernel->trans_b = tb != NULL ? tb->i : 0;
  kernel->alpha = alpha != NULL ? alpha->f : 1;
  kernel->rows = node->outputs[0].dims[0];
  kernel->columns = node->outputs[0].dims[1];
  kernel->inner = node->inputs[0].dims[kernel->trans_a ? 0 : 1];
}

static int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out,
                       gr_kernel_info_t* info, gr_error_t* err) {
  (void)self;
  const gr_node_view_t* node = &group->nodes[0];
  if (group->node_count != 1 || refusal(node) != NULL) {
    return gr_fail(err, GR_UNSUPPORTED, node->op, "claimed nodes alone, one at a time");
  }
  gr_kernel_t* kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "prepare", "no memory for a kernel");
  kernel->run = find_row(node)->run;
  kernel->count = count_of(&node->outputs[0]);
  if (kernel->run == run_matmul) size_matmul(node, kernel);
  info->workspace_bytes = 0;
  info->cost_ns = 0;
  for (int k = 0; k < GR_MAX_IN_PLACE; ++k) info->in_place[k] = -1;
  kernel->input[1] = -1;
  for (uint32_t k = 0; k < node->input_count; ++k) {
    /* A value that is both inputs of the node comes once at the border. */
    uint32_t place = 0;
    while (place + 1 < group->input_count && group->inputs[place].id != node->inputs[k].id) ++place;
    kernel->input[k] = (int32_t)place;
    const int moves = same_dims(&node->inputs[k], &node->outputs[0]);
    kernel->step[k] = moves;
    if (moves && kernel->run != run_matmul) info->in_place[0] = (int32_t)place;
  }
  *out = kernel;
  return GR_OK;
}

static void kernel_destroy(void* self, gr_kernel_t* kernel) {
  (void)self;
  free(kernel);
}

static float* floats(const DLTensor* t) { return (float*)(void*)((char*)t->data + t->byte_offset); }

/* In every step. A device of its own would queue the kernel on `stream` and return. */
static int32_t launch(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                      DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                      gr_error_t* err) {
  (void)self;
  (void)workspace;
  (void)stream;
  (void)err;
  const float* second = kernel->input[1] < 0 ? NULL : floats(inputs[kernel->input[1]]);
  kernel->run(kernel, floats(inputs[kernel->input[0]]), second, floats(outputs[0]));
  return GR_OK;
}

/* The table that the host gets. */

static void destroy(void* self) { (void)self; } /* no instance data: nothing was allocated */

/* `instance` is a gr_backend_t as long as the host knows it: fill what fits, say how much. A device
 * that may be absent has a `probe` in its factory that answers GR_UNSUPPORTED with the reason. */
static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  (void)host;
  (void)options;
  gr_backend_t* out = instance;
  gr_backend_t table = {0};
  const uint32_t host_size = out->struct_size;
  if (!GR_HAS(out, launch)) return gr_fail(err, GR_VERSION, "backend", "the host is too old");
  fill_device(&table);
  table.struct_size = host_size < sizeof table ? host_size : (uint32_t)sizeof table;
  table.destroy = destroy;
  table.claim = claim;
  table.prepare = prepare;
  table.kernel_destroy = kernel_destroy;
  table.launch = launch;
  memcpy(out, &table, table.struct_size);
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "backend",
    .name = "my_backend", /* `plugin: my_backend` */
    .version = "1.0.0",
    .help = "A few float32 operators in plain loops.",
    .option_stride = sizeof(gr_option_t),
    .create = create,
};

/* The one exported symbol. The id is yours: reverse DNS. */
GR_PLUGIN("org.example.my_backend", "1.0.0", &factory);
