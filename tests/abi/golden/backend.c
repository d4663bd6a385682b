/* SPDX-License-Identifier: Apache-2.0 */
/* Backend `golden_host`: float32 Add, Sub and Mul of equal shapes on host memory, everything at
 * once; the rest is left to the next backend of the chain.
 */
#include "gradrack/backend.h"

#include <stdlib.h>

#include "fill.h"

/* Work is done when it is queued, so a stream or an event is no more than an address. */
static char device_of_all;

struct gr_kernel {
  char op; /* 'A', 'S', 'M' */
};

static void destroy(void* self) { (void)self; }

static int32_t device_info(void* self, gr_device_info_t* out, gr_error_t* err) {
  (void)self;
  (void)err;
  out->device_type = kDLCPU;
  out->device_id = 0;
  out->memory = GR_MEMORY_HOST;
  out->alignment = 64;
  out->memory_bytes = 0;
  out->max_streams = 1;
  out->description = "golden host memory";
  return GR_OK;
}

static int32_t allocate(void* self, int64_t bytes, void** out, gr_error_t* err) {
  (void)self;
  *out = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
  return *out != NULL ? (int32_t)GR_OK : gr_fail(err, GR_OUT_OF_MEMORY, "", "no host memory");
}

static void release(void* self, void* memory) {
  (void)self;
  free(memory);
}

static int64_t elements(const DLTensor* tensor) {
  int64_t count = 1;
  for (int32_t k = 0; k < tensor->ndim; ++k) count *= tensor->shape[k];
  return count;
}

static char* bytes_of(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }

static int32_t copy(void* self, const DLTensor* destination, const DLTensor* source,
                    gr_stream_t* stream, gr_error_t* err) {
  (void)self;
  (void)stream;
  (void)err;
  memmove(bytes_of(destination), bytes_of(source),
          (size_t)(elements(source) * gr_dtype_bytes(gr_dtype_of(source->dtype))));
  return GR_OK;
}

static int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) {
  (void)self;
  (void)err;
  *out = (gr_stream_t*)&device_of_all;
  return GR_OK;
}
static void stream_destroy(void* self, gr_stream_t* stream) {
  (void)self;
  (void)stream;
}
static int32_t stream_synchronize(void* self, gr_stream_t* stream, gr_error_t* err) {
  (void)self;
  (void)stream;
  (void)err;
  return GR_OK;
}
static int32_t event_create(void* self, gr_event_t** out, gr_error_t* err) {
  (void)self;
  (void)err;
  *out = (gr_event_t*)&device_of_all;
  return GR_OK;
}
static void event_destroy(void* self, gr_event_t* event) {
  (void)self;
  (void)event;
}
static int32_t on_event(void* self, gr_event_t* event, gr_stream_t* stream, gr_error_t* err) {
  (void)event;
  return stream_synchronize(self, stream, err);
}
static int32_t stream_wait(void* self, gr_stream_t* stream, gr_event_t* event, gr_error_t* err) {
  return on_event(self, event, stream, err);
}
static int32_t event_synchronize(void* self, gr_event_t* event, gr_error_t* err) {
  return on_event(self, event, NULL, err);
}

static int same_shape(const gr_value_type_t* x, const gr_value_type_t* y) {
  return x->dtype == GR_FLOAT32 && y->dtype == GR_FLOAT32 && x->rank == y->rank &&
         memcmp(x->dims, y->dims, x->rank * sizeof x->dims[0]) == 0;
}

static int runs(const gr_node_view_t* node) {
  const int known =
      strcmp(node->op, "Add") == 0 || strcmp(node->op, "Sub") == 0 || strcmp(node->op, "Mul") == 0;
  return known && node->domain[0] == '\0' && node->input_count == 2 &&
         same_shape(&node->inputs[0], &node->outputs[0]) &&
         same_shape(&node->inputs[1], &node->outputs[0]);
}

static int32_t claim(void* self, const gr_node_view_t* nodes, uint32_t node_stride, uint32_t count,
                     gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) {
  (void)self;
  (void)err;
  for (uint32_t k = 0; k < count; ++k) {
    const void* node = (const char*)nodes + (size_t)k * node_stride;
    gr_claim_t* out = (gr_claim_t*)(void*)((char*)claims + (size_t)k * claim_stride);
    out->verdict = runs((const gr_node_view_t*)node) ? GR_CLAIM_YES : GR_CLAIM_NO;
    out->group = -1;
    out->cost_ns = 0;
    strcpy(out->reason,
           out->verdict == GR_CLAIM_YES ? "" : "not a float32 sum, difference, product");
  }
  return GR_OK;
}

static int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out,
                       gr_kernel_info_t* info, gr_error_t* err) {
  gr_kernel_t* kernel = malloc(sizeof *kernel);
  (void)self;
  if (kernel == NULL) return gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for a kernel");
  kernel->op = group->nodes[0].op[0];
  info->workspace_bytes = 0;
  info->cost_ns = 0;
  for (int k = 0; k < GR_MAX_IN_PLACE; ++k) info->in_place[k] = -1;
  *out = kernel;
  return GR_OK;
}

static void kernel_destroy(void* self, gr_kernel_t* kernel) {
  (void)self;
  free(kernel);
}

static int32_t launch(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                      DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                      gr_error_t* err) {
  const float* x = (const float*)(const void*)bytes_of(inputs[0]);
  const float* y = (const float*)(const void*)bytes_of(inputs[1]);
  float* z = (float*)(void*)bytes_of(outputs[0]);
  const int64_t count = elements(outputs[0]);
  (void)self;
  (void)workspace;
  (void)stream;
  (void)err;
  for (int64_t k = 0; k < count; ++k) {
    z[k] = kernel->op == 'A' ? x[k] + y[k] : kernel->op == 'S' ? x[k] - y[k] : x[k] * y[k];
  }
  return GR_OK;
}

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  const gr_backend_t table = {
      .self = &device_of_all,
      .destroy = destroy,
      .device_info = device_info,
      .allocate = allocate,
      .release = release,
      .copy = copy,
      .stream_create = stream_create,
      .stream_destroy = stream_destroy,
      .stream_synchronize = stream_synchronize,
      .event_create = event_create,
      .event_destroy = event_destroy,
      .event_record = on_event,
      .stream_wait = stream_wait,
      .event_synchronize = event_synchronize,
      .claim = claim,
      .prepare = prepare,
      .kernel_destroy = kernel_destroy,
      .launch = launch,
  };
  (void)host;
  (void)options;
  (void)err;
  fill(instance, &table, sizeof table);
  return GR_OK;
}

static const gr_factory_t factory = {
    .struct_size = sizeof(gr_factory_t),
    .kind = "backend",
    .name = "golden_host",
    .version = "1.0.0",
    .help = "Sums and products on host memory, kept as a binary.",
    .option_stride = sizeof(gr_option_t),
    .create = create,
};

GR_PLUGIN("gradrack.golden.backend", "1.0.0", &factory);
