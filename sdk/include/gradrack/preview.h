// SPDX-License-Identifier: Apache-2.0
// gr.preview/1, an extension of data sources: pictures of what a model says of a batch.
//
// The source made the batch, so it knows what the numbers mean: it draws a row with the truth and
// the model's outputs, the host writes the picture into the run folder after an evaluation.
// `data->get_extension(data->self, GR_EXT_PREVIEW)` gives the table or NULL. Invariant: a picture
// is a pure function of the request.
#ifndef GRADRACK_PREVIEW_H_
#define GRADRACK_PREVIEW_H_

#include "gradrack/status.h"
#include "gradrack/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_PREVIEW "gr.preview/1"

/// A tensor by name. Frozen: never grows.
typedef struct gr_named_tensor {
  const char* name;
  const DLTensor* tensor;  ///< dense, on the host; NULL: not at hand (the model does not read it)
} gr_named_tensor_t;

typedef struct gr_preview_request {
  uint32_t struct_size;
  uint32_t batch_count;
  uint32_t output_count;
  uint32_t reserved;
  int64_t row;                       ///< of the batch
  const gr_named_tensor_t* batch;    ///< outputs of the source, in declared order
  const gr_named_tensor_t* outputs;  ///< outputs of the model under evaluation
} gr_preview_request_t;

typedef struct gr_preview {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Pixels of a picture; the same answer every time. [any]
  int32_t (*size)(void* self, int64_t* height, int64_t* width, gr_error_t* err);
  /// Draws a row into `image`, a dense host tensor uint8 [height, width, 3] of red, green, blue.
  /// GR_NOT_FOUND: names an output that the model lacks; GR_INVALID_ARGUMENT: one that has another
  /// shape than this source can draw. [exec]
  int32_t (*draw)(void* self, const gr_preview_request_t* request, DLTensor* image,
                  gr_error_t* err);
} gr_preview_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PREVIEW_H_
