/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory as a device: allocations, copies, streams and events that need not wait.
 *
 * Every piece of work is done when its call returns, so a stream is always idle, an event always
 * passed, and the waits have nothing to do. Invariant: what the host may then rely on (work of a
 * stream in order, a wait that waits) still holds. A device with queues fills in the same slots:
 * copy and launch queue on `stream`, event_record marks a place in it, stream_wait queues a wait.
 */
#include "device.h"

#include <stdlib.h>

enum { ALIGNMENT = 64 };

static int32_t device_info(void* self, gr_device_info_t* out, gr_error_t* err) {
  (void)self;
  (void)err;
  gr_device_info_t info = {0};
  info.struct_size = out->struct_size < sizeof info ? out->struct_size : (uint32_t)sizeof info;
  info.device_type = kDLCPU;
  info.memory = GR_MEMORY_HOST; /* GR_MEMORY_DEVICE or _HANDLE: the host never reads through it */
  info.alignment = ALIGNMENT;
  info.max_streams = 16;
  info.description = "host memory, plain loops";
  memcpy(out, &info, info.struct_size);
  return GR_OK;
}

static int32_t allocate(void* self, int64_t bytes, void** out, gr_error_t* err) {
  (void)self;
  const int64_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  *out = bytes > 0 && rounded >= bytes ? aligned_alloc(ALIGNMENT, (size_t)rounded) : NULL;
  if (*out != NULL) return GR_OK;
  return gr_fail(err, GR_OUT_OF_MEMORY, "allocate", "no host memory of that size");
}

static void release(void* self, void* memory) {
  (void)self;
  free(memory);
}

static int32_t copy(void* self, const DLTensor* destination, const DLTensor* source,
                    gr_stream_t* stream, gr_error_t* err) {
  (void)self;
  (void)stream;
  (void)err;
  int64_t bytes = gr_dtype_bytes(gr_dtype_of(source->dtype));
  for (int32_t k = 0; k < source->ndim; ++k) bytes *= source->shape[k];
  if (bytes > 0) {
    memcpy((char*)destination->data + destination->byte_offset,
           (const char*)source->data + source->byte_offset, (size_t)bytes);
  }
  return GR_OK;
}

/* A stream and an event are told apart by their address alone. */
static int32_t handle_create(void** out, gr_error_t* err) {
  *out = malloc(1);
  return *out != NULL ? GR_OK : gr_fail(err, GR_OUT_OF_MEMORY, "", "no memory for a handle");
}

static int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) {
  (void)self;
  void* handle;
  const int32_t status = handle_create(&handle, err);
  *out = handle;
  return status;
}

static void stream_destroy(void* self, gr_stream_t* stream) {
  (void)self;
  free(stream);
}

static int32_t stream_synchronize(void* self, gr_stream_t* stream, gr_error_t* err) {
  (void)self;
  (void)stream;
  (void)err;
  return GR_OK;
}

static int32_t event_create(void* self, gr_event_t** out, gr_error_t* err) {
  (void)self;
  void* handle;
  const int32_t status = handle_create(&handle, err);
  *out = handle;
  return status;
}

static void event_destroy(void* self, gr_event_t* event) {
  (void)self;
  free(event);
}

static int32_t event_record(void* self, gr_event_t* event, gr_stream_t* stream, gr_error_t* err) {
  (void)self;
  (void)event;
  (void)stream;
  (void)err;
  return GR_OK;
}

static int32_t stream_wait(void* self, gr_stream_t* stream, gr_event_t* event, gr_error_t* err) {
  (void)self;
  (void)stream;
  (void)event;
  (void)err;
  return GR_OK;
}

static int32_t event_synchronize(void* self, gr_event_t* event, gr_error_t* err) {
  (void)self;
  (void)event;
  (void)err;
  return GR_OK;
}

void fill_device(gr_backend_t* table) {
  table->device_info = device_info;
  table->allocate = allocate;
  table->release = release;
  table->copy = copy;
  table->stream_create = stream_create;
  table->stream_destroy = stream_destroy;
  table->stream_synchronize = stream_synchronize;
  table->event_create = event_create;
  table->event_destroy = event_destroy;
  table->event_record = event_record;
  table->stream_wait = stream_wait;
  table->event_synchronize = event_synchronize;
}
