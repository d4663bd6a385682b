/* SPDX-License-Identifier: Apache-2.0
   A backend in host memory that claims every node and has no kernel for any. */
#include <stdlib.h>

#include "gradrack/gradrack.h"

static int32_t device_info(void* self, gr_device_info_t* out, gr_error_t* err) {
  (void)self, (void)err;
  out->device_type = kDLCPU;
  out->memory = GR_MEMORY_HOST;
  out->alignment = 64;
  out->max_streams = 1;
  out->description = "claims everything";
  return GR_OK;
}

static int32_t allocate(void* self, int64_t bytes, void** out, gr_error_t* err) {
  (void)self;
  *out = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
  return *out != NULL ? GR_OK : gr_fail(err, GR_OUT_OF_MEMORY, "", "out of memory");
}
static void release(void* self, void* memory) {
  (void)self;
  free(memory);
}
static int32_t copy(void* self, const DLTensor* to, const DLTensor* from, gr_stream_t* stream,
                    gr_error_t* err) {
  (void)self, (void)to, (void)from, (void)stream;
  return gr_fail(err, GR_INTERNAL, "", "never called");
}

static int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) {
  (void)err;
  *out = (gr_stream_t*)self;
  return GR_OK;
}
static void stream_destroy(void* self, gr_stream_t* stream) { (void)self, (void)stream; }
static int32_t stream_synchronize(void* self, gr_stream_t* stream, gr_error_t* err) {
  (void)self, (void)stream, (void)err;
  return GR_OK;
}
static int32_t event_create(void* self, gr_event_t** out, gr_error_t* err) {
  (void)err;
  *out = (gr_event_t*)self;
  return GR_OK;
}
static void event_destroy(void* self, gr_event_t* event) { (void)self, (void)event; }
static int32_t event_record(void* self, gr_event_t* event, gr_stream_t* stream, gr_error_t* err) {
  (void)self, (void)event, (void)stream, (void)err;
  return GR_OK;
}
static int32_t stream_wait(void* self, gr_stream_t* stream, gr_event_t* event, gr_error_t* err) {
  (void)self, (void)event, (void)stream, (void)err;
  return GR_OK;
}
static int32_t event_synchronize(void* self, gr_event_t* event, gr_error_t* err) {
  (void)self, (void)event, (void)err;
  return GR_OK;
}

static int32_t claim(void* self, const gr_node_view_t* nodes, uint32_t node_stride, uint32_t count,
                     gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err) {
  (void)self, (void)nodes, (void)node_stride, (void)err;
  for (uint32_t k = 0; k < count; ++k) {
    gr_claim_t* answer = (gr_claim_t*)(void*)((char*)claims + (size_t)k * claim_stride);
    answer->verdict = GR_CLAIM_YES;
    answer->group = -1;
  }
  return GR_OK;
}
static int32_t prepare(void* self, const gr_group_t* group, gr_kernel_t** out,
                       gr_kernel_info_t* info, gr_error_t* err) {
  (void)self, (void)group, (void)out, (void)info;
  return gr_fail(err, GR_UNSUPPORTED, "", "there is no kernel for it after all");
}
static void kernel_destroy(void* self, gr_kernel_t* kernel) { (void)self, (void)kernel; }
static int32_t launch(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                      DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                      gr_error_t* err) {
  (void)self, (void)kernel, (void)inputs, (void)outputs, (void)workspace, (void)stream;
  return gr_fail(err, GR_INTERNAL, "", "never called");
}
static void destroy(void* self) { free(self); }

static int32_t create(const gr_host_t* host, const gr_options_t* options, void* instance,
                      gr_error_t* err) {
  const gr_backend_t table = {sizeof table,
                              0,
                              malloc(1),
                              destroy,
                              device_info,
                              allocate,
                              release,
                              copy,
                              stream_create,
                              stream_destroy,
                              stream_synchronize,
                              event_create,
                              event_destroy,
                              event_record,
                              stream_wait,
                              event_synchronize,
                              claim,
                              prepare,
                              kernel_destroy,
                              launch,
                              NULL};
  (void)host, (void)options, (void)err;
  (void)memcpy(instance, &table, sizeof table);
  return GR_OK;
}

static const gr_factory_t factory = {sizeof(gr_factory_t),
                                     0,
                                     "backend",
                                     "overclaims",
                                     "1.0.0",
                                     "for tests",
                                     NULL,
                                     0,
                                     0,
                                     NULL,
                                     create};

GR_PLUGIN("test.overclaims", "1.0.0", &factory);
