// SPDX-License-Identifier: Apache-2.0
// The backend kind: a device that claims nodes, prepares kernels for concrete shapes, and launches
// them on its streams.
//
// Life of a node here: claim (may I run it, how well) -> prepare (shapes are known: make the
// kernel, say what it needs) -> launch (every step: asynchronous, no allocation, no lock). The host
// owns all memory. Invariant: a kernel depends on its inputs, workspace and attributes alone, so
// that equal launches give equal bits whatever stream they are on. What is not claimed goes to the
// next backend of the chain.
#ifndef GRADRACK_BACKEND_H_
#define GRADRACK_BACKEND_H_

#include "gradrack/graph.h"
#include "gradrack/plugin.h"
#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gr_stream gr_stream_t;  ///< the backend's: an in-order queue
typedef struct gr_event gr_event_t;    ///< the backend's: a point in a stream
typedef struct gr_kernel gr_kernel_t;  ///< the backend's: code for one group at one set of shapes

/// How the host names a place inside an allocation. In all three a tensor begins at data +
/// byte_offset; in the first two byte_offset is 0.
enum {
  GR_MEMORY_DEVICE = 0,  ///< an address on the device: the host adds to it, never reads through it
  GR_MEMORY_HOST = 1,    ///< plain host memory, shared with other such backends
  GR_MEMORY_HANDLE = 2  ///< an object (cl_mem): `data` is what allocate gave, byte_offset the place
};

/// Bits of gr_backend.flags.
enum {
  /// Functions tagged [exec] may be called from several threads at once, on different streams that
  /// may run the same kernels, and while one [plan] function is under way. Calls for one stream,
  /// and for events recorded on it, still come one at a time. Each trainer of a process then has
  /// streams of its own, and max_streams counts those of one. Without this bit the host lets one
  /// trainer at a time use the device, and all use the same streams. Since 1.1.
  GR_BACKEND_CONCURRENT = 1
};

typedef struct gr_device_info {
  uint32_t struct_size;
  int32_t device_type;  ///< DLDeviceType
  int32_t device_id;
  int32_t memory;        ///< GR_MEMORY_*
  int64_t alignment;     ///< bytes, a power of two: of every tensor
  int64_t memory_bytes;  ///< of the device; 0: unknown
  uint32_t max_streams;
  uint32_t reserved;
  const char* description;  ///< one line: device, instruction set, threads
} gr_device_info_t;

/// Type of a value with concrete dims. Frozen: never grows.
typedef struct gr_value_type {
  gr_value_t id;  ///< same id, same value within one request
  gr_dtype_t dtype;
  uint32_t rank;
  uint32_t reserved;
  const int64_t* dims;
  const void* constant;  ///< dense host bytes if the value is known when planning, else NULL
} gr_value_type_t;

/// A node as a backend sees it. Absent optional inputs have id GR_NO_VALUE.
typedef struct gr_node_view {
  uint32_t struct_size;
  int32_t kind;  ///< GR_KIND_*
  const char* domain;
  const char* op;
  const gr_value_type_t* inputs;
  const gr_value_type_t* outputs;
  const gr_attr_t* attrs;  ///< complete: defaults filled in by the host
  uint32_t input_count;
  uint32_t output_count;
  uint32_t attr_count;
  uint32_t reserved;
} gr_node_view_t;

enum { GR_CLAIM_NO = 0, GR_CLAIM_YES = 1 };
enum { GR_MAX_IN_PLACE = 8 };

/// Bits of gr_claim.flags.
enum {
  /// Of a yes: tensors are converted to another dtype and back, to be worked on there.
  /// gr_claim.reason says to which. Since 1.1.
  GR_CLAIM_CONVERTED = 1
};

/// Verdict on one node. The host sets struct_size; the callee fills the rest.
typedef struct gr_claim {
  uint32_t struct_size;
  int32_t verdict;   ///< GR_CLAIM_*
  int32_t group;     ///< nodes with one number >= 0 become one kernel; -1: alone
  int32_t flags;     ///< GR_CLAIM_CONVERTED or 0. Since 1.1
  int64_t cost_ns;   ///< estimate; 0: unknown
  char reason[128];  ///< NO: which dtype, attribute or rank is in the way; CONVERTED: to what
} gr_claim_t;

/// A group to prepare: nodes in order, with the values that cross its border.
typedef struct gr_group {
  uint32_t struct_size;
  uint32_t node_stride;  ///< bytes between two nodes
  const gr_node_view_t* nodes;
  uint32_t node_count;
  uint32_t input_count;
  const gr_value_type_t* inputs;  ///< present ones only, in the order of launch
  const gr_value_type_t* outputs;
  uint32_t output_count;
  uint32_t pattern;  ///< 1 + index of the pattern that it matches (fusion.h); 0: none. Since 1.1
} gr_group_t;

/// Bits of gr_kernel_info.flags.
enum {
  /// No run of this kernel ends in an error, whatever its inputs hold: what it writes over need not
  /// be kept for undoing a step. Since 1.1.
  GR_KERNEL_CANNOT_FAIL = 1
};

/// What a kernel needs and allows. The host sets struct_size, and zeroes the rest.
typedef struct gr_kernel_info {
  uint32_t struct_size;
  uint32_t flags;  ///< GR_KERNEL_* or-ed. Since 1.1
  int64_t workspace_bytes;
  int64_t cost_ns;  ///< estimate; 0: unknown
  /// For output k (k < 8): the input whose memory it may share element for element, or -1.
  int32_t in_place[GR_MAX_IN_PLACE];
} gr_kernel_info_t;

typedef struct gr_backend {
  uint32_t struct_size;
  uint32_t flags;  ///< GR_BACKEND_* or-ed
  void* self;
  /// After every kernel, stream, event and allocation is gone. [main]
  void (*destroy)(void* self);
  /// What the device is and asks for; the same answer every time. [plan]
  int32_t (*device_info)(void* self, gr_device_info_t* out, gr_error_t* err);

  // Memory.
  /// Zeroed or not, aligned as device_info says, `bytes` > 0. GR_OUT_OF_MEMORY. [plan]
  int32_t (*allocate)(void* self, int64_t bytes, void** out, gr_error_t* err);
  /// Gives back what allocate gave, once, when nothing queued uses it any more. [plan]
  void (*release)(void* self, void* memory);
  /// Copies a dense tensor to one of equal dtype and shape, in stream order. At least one of the
  /// two is on this device; the other may be host memory (kDLCPU), which may be pageable: the call
  /// may block on it. Host memory that is read stays as it is until the stream has passed. [exec]
  int32_t (*copy)(void* self, const DLTensor* destination, const DLTensor* source,
                  gr_stream_t* stream, gr_error_t* err);

  // Streams and events. An error of asynchronous work is kept and comes back, once, from the next
  // stream_synchronize or event_synchronize that covers it; later work of that stream is skipped.
  // An event recorded behind the error passes it on: later work of a stream that waits for the
  // event is skipped too, and that stream gives the error back as well. (Since 1.1.)
  /// Makes an in-order queue, at most max_streams of them (more: see GR_BACKEND_CONCURRENT). [plan]
  int32_t (*stream_create)(void* self, gr_stream_t** out, gr_error_t* err);
  /// Ends an idle stream. [plan]
  void (*stream_destroy)(void* self, gr_stream_t* stream);
  /// Blocks the calling thread until the stream is empty. [exec]
  int32_t (*stream_synchronize)(void* self, gr_stream_t* stream, gr_error_t* err);
  /// Makes an event that nothing has recorded. [plan]
  int32_t (*event_create)(void* self, gr_event_t** out, gr_error_t* err);
  /// Ends an event that no stream waits for. [plan]
  void (*event_destroy)(void* self, gr_event_t* event);
  /// Marks all work queued on `stream` so far. [exec]
  int32_t (*event_record)(void* self, gr_event_t* event, gr_stream_t* stream, gr_error_t* err);
  /// Later work on `stream` waits for the event's last record. [exec]
  int32_t (*stream_wait)(void* self, gr_stream_t* stream, gr_event_t* event, gr_error_t* err);
  /// Blocks the calling thread until the event's last record has passed. [exec]
  int32_t (*event_synchronize)(void* self, gr_event_t* event, gr_error_t* err);

  // Nodes.
  /// One batch query. Shapes are concrete. Fills `claims[k]` for `nodes[k]`. [plan]
  int32_t (*claim)(void* self, const gr_node_view_t* nodes, uint32_t node_stride, uint32_t count,
                   gr_claim_t* claims, uint32_t claim_stride, gr_error_t* err);
  /// Makes a kernel for a claimed group. Copies what it keeps. [plan]
  int32_t (*prepare)(void* self, const gr_group_t* group, gr_kernel_t** out, gr_kernel_info_t* info,
                     gr_error_t* err);
  /// Ends a kernel that no stream is running. [plan]
  void (*kernel_destroy)(void* self, gr_kernel_t* kernel);
  /// Queues one run: inputs and outputs in the group's border order; the tensors' structs and
  /// memory stay valid until the plan ends. `workspace`: one row of workspace_bytes uint8, NULL
  /// when the kernel asked for none. Allocates nothing. [exec]
  int32_t (*launch)(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                    DLTensor* const* outputs, const DLTensor* workspace, gr_stream_t* stream,
                    gr_error_t* err);
  /// (optional) Extension "gr.capture/1" (capture.h), "gr.fusion/1" (fusion.h), ... or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_backend_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_BACKEND_H_
