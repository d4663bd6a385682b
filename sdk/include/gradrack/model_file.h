// SPDX-License-Identifier: Apache-2.0
// Models that come from a file, and files that hold a model: extensions of model plugins.
//
// gr.model_weights/1 and gr.model_facts/1 belong to an instance (`model->get_extension`), which
// read a file when it was made: the content of its parameters, and what the file says of itself.
// gr.model_writer/1 belongs to a library (`plugin->get_extension`): the host hands it the nodes and
// tensors of any model, and it writes a file. Invariant: the host knows no file format of models.
#ifndef GRADRACK_MODEL_FILE_H_
#define GRADRACK_MODEL_FILE_H_

#include "gradrack/graph.h"
#include "gradrack/status.h"
#include "gradrack/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// With what the model's parameters and buffers begin, where it read that from a file.
#define GR_EXT_MODEL_WEIGHTS "gr.model_weights/1"
typedef struct gr_model_weights {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Writes the first content of parameter or buffer `name` to `out`, a dense host tensor with the
  /// dtype and dims that `build` declared. GR_NOT_FOUND: the file has none, and it begins as its
  /// gr_init_t says. [main]
  int32_t (*read)(void* self, const char* name, DLTensor* out, gr_error_t* err);
} gr_model_weights_t;

/// One thing that a model's file says of itself. Text lives as long as the instance. Frozen.
typedef struct gr_model_fact {
  const char* topic;  ///< "file", "metadata", "operator", "note"
  const char* key;    ///< unique within its topic: "producer", "Conv"
  const char* value;
} gr_model_fact_t;

/// Facts for people and for a file that is written from this model: its metadata is kept.
#define GR_EXT_MODEL_FACTS "gr.model_facts/1"
typedef struct gr_model_facts {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Fact `index`, counted from 0. GR_OUT_OF_RANGE: there are not so many. [any]
  int32_t (*fact)(void* self, uint64_t index, gr_model_fact_t* out, gr_error_t* err);
} gr_model_facts_t;

/// Where a value of a written model comes from.
enum {
  GR_WRITTEN_NODE = 0,       ///< a node makes it
  GR_WRITTEN_INPUT = 1,      ///< whoever runs the model brings it
  GR_WRITTEN_PARAMETER = 2,  ///< a tensor: trained
  GR_WRITTEN_BUFFER = 3,     ///< a tensor: running statistics
  GR_WRITTEN_CONSTANT = 4    ///< a tensor: part of the model
};

/// A value of a model that is to be written.
typedef struct gr_written_value {
  uint32_t struct_size;
  int32_t source;    ///< GR_WRITTEN_*
  const char* name;  ///< not empty, unique among the values
  gr_dtype_t dtype;
  uint32_t rank;
  const gr_dim_t* dims;
  const void* data;  ///< a tensor's content, dense and row-major; NULL: it is none
  uint64_t bytes;    ///< of data
} gr_written_value_t;

/// A node; its ids count into the values. One that is left out is GR_NO_VALUE.
typedef struct gr_written_node {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;  ///< of the node: unique; its stage comes first
  const gr_node_t* node;
  const gr_value_t* outputs;  ///< node->output_count of them
} gr_written_node_t;

typedef struct gr_written_output {
  const char* name;  ///< what it is called from outside
  gr_value_t value;
  int32_t reserved;
} gr_written_output_t;

/// A whole forward graph, in an order in which it can run. Valid during the call only.
typedef struct gr_written_model {
  uint32_t struct_size;
  uint32_t reserved;
  const char* name;  ///< of the model
  uint64_t value_count;
  const gr_written_value_t* const* values;
  uint64_t node_count;
  const gr_written_node_t* const* nodes;
  uint64_t output_count;
  const gr_written_output_t* outputs;
  uint64_t fact_count;
  const gr_model_fact_t* facts;  ///< of the file that the model was read from
} gr_written_model_t;

/// Writes models as files of one format. Extension of a library.
#define GR_EXT_MODEL_WRITER "gr.model_writer/1"
typedef struct gr_model_writer {
  uint32_t struct_size;
  uint32_t flags;
  const char* format;  ///< "onnx": what `gradrack export --format` calls it
  const char* help;    ///< one line
  int64_t version;     ///< of the format's operators, where none is asked for
  /// GR_OK: the format has this operator at `version`. GR_UNSUPPORTED: the host has to say it by
  /// others, or refuse, naming it. GR_OUT_OF_RANGE: no such version; the message names those there
  /// are. [any]
  int32_t (*takes)(const char* domain, const char* op, int64_t version, gr_error_t* err);
  /// Writes `model` to `path`, a file that is not there yet. GR_IO: names the path and the reason;
  /// what was begun is removed. [main]
  int32_t (*write)(const gr_written_model_t* model, int64_t version, const char* path,
                   gr_error_t* err);
} gr_model_writer_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_MODEL_FILE_H_
