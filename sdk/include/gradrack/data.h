// SPDX-License-Identifier: Apache-2.0
// The data kind: sources of batches, with a tokenizer where the data is text.
//
// Invariant: a batch is a pure function of (options, seed, split, index), so that a position is a
// number: nothing has to be replayed on resume.
#ifndef GRADRACK_DATA_H_
#define GRADRACK_DATA_H_

#include "gradrack/graph.h"
#include "gradrack/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GR_SPLIT_TRAIN = 0, GR_SPLIT_VALIDATION = 1 };

/// One tensor of a batch. The first dim is the symbol "batch"; the others are numbers, or symbols
/// that the extension gr.batch/1 declares.
typedef struct gr_data_output {
  const char* name;  ///< matched with the model's input of the same name
  gr_dtype_t dtype;
  uint32_t rank;
  gr_dim_t dims[GR_MAX_RANK];
  int64_t limit;  ///< integers: values are in [0, limit); 0: any (ignore_index may appear too)
} gr_data_output_t;

/// What a source offers. All pointers live until the instance is destroyed.
typedef struct gr_data_info {
  uint32_t struct_size;
  uint32_t output_count;
  const gr_data_output_t* outputs;  ///< walk with output_stride
  uint32_t output_stride;
  uint32_t reserved;
  int64_t vocab;        ///< text: number of token ids; 0 otherwise
  int64_t classes;      ///< classification: number of classes; 0 otherwise
  int64_t block;        ///< text: tokens a row; 0 otherwise
  int64_t train_items;  ///< windows or samples to draw from
  int64_t validation_items;
  const char* summary;  ///< one line for people
  /// Hash of all that decides the batches (files' content, tokenizer, options); NULL: not known.
  /// A run that is resumed with another one is another run.
  const char* identity;
} gr_data_info_t;

typedef struct gr_batch_request {
  uint32_t struct_size;
  int32_t split;       ///< GR_SPLIT_*
  uint64_t seed;       ///< the run's data seed
  int64_t index;       ///< training: running microbatch number from 0; validation: batch number
  int64_t batch_size;  ///< rows asked for
} gr_batch_request_t;

/// The [exec] functions may be called by several threads at once, so that several batches can be
/// prepared side by side.
enum { GR_DATA_CONCURRENT = 1 };

typedef struct gr_data {
  uint32_t struct_size;
  uint32_t flags;  ///< GR_DATA_*
  void* self;
  /// Frees `self`. [main]
  void (*destroy)(void* self);
  /// What the source offers; the same answer every time. [any]
  int32_t (*info)(void* self, gr_data_info_t* out, gr_error_t* err);
  /// Rows of batch `index`: training batches are always full; the last validation batch may be
  /// short. 0 after the end of the validation split. [any]
  int32_t (*rows)(void* self, const gr_batch_request_t* request, int64_t* rows, gr_error_t* err);
  /// Fills one dense host tensor per output, in declared order, each with `rows` rows.
  /// GR_OUT_OF_RANGE names a token or label beyond its limit, with its position. [exec]
  int32_t (*batch)(void* self, const gr_batch_request_t* request, DLTensor* const* outputs,
                   uint32_t output_count, gr_error_t* err);
  /// (optional) Text to ids: writes at most `capacity` ids and the number needed. GR_OUT_OF_RANGE:
  /// a character the vocabulary lacks. [any]
  int32_t (*encode)(void* self, const char* text, uint64_t bytes, int64_t* ids, uint64_t capacity,
                    uint64_t* count, gr_error_t* err);
  /// (optional) Ids to text (not 0-terminated): writes at most `capacity` bytes and the number
  /// needed. [any]
  int32_t (*decode)(void* self, const int64_t* ids, uint64_t count, char* text, uint64_t capacity,
                    uint64_t* bytes, gr_error_t* err);
  /// (optional) Extension `id` ("gr.area.name/1") of this instance, or NULL. [any]
  const void* (*get_extension)(void* self, const char* id);
} gr_data_t;

/// Extension of a data instance (`get_extension` of its table) whose batches differ in what the
/// model has to learn from them, or in their sizes. The host makes every plan that these
/// declarations can ask for before the first step. Without it every batch has all objectives.
#define GR_EXT_BATCH "gr.batch/1"
enum { GR_MAX_BATCH_SYMBOLS = 4 };

/// Objectives of the model that can be active together. Frozen.
typedef struct gr_objective_set {
  const char* const* names;
  uint64_t count;  ///< at least 1
} gr_objective_set_t;

/// A dim of the outputs that is no number, nor "batch". Frozen.
typedef struct gr_batch_symbol {
  const char* name;
  int64_t largest;  ///< no batch has more
} gr_batch_symbol_t;

/// What batches can be. All pointers live until the instance is destroyed.
typedef struct gr_batch_info {
  uint32_t struct_size;
  uint32_t set_count;              ///< 0: every batch has all objectives
  const gr_objective_set_t* sets;  ///< different ones
  uint32_t symbol_count;           ///< at most GR_MAX_BATCH_SYMBOLS
  uint32_t reserved;
  const gr_batch_symbol_t* symbols;
} gr_batch_info_t;

/// What one batch is.
typedef struct gr_batch_description {
  uint32_t struct_size;
  uint32_t objective_set;               ///< index into the sets; 0 where there are none
  int64_t sizes[GR_MAX_BATCH_SYMBOLS];  ///< by symbol: from 1 to its largest
} gr_batch_description_t;

typedef struct gr_batch {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// What batches can be; the same answer every time. [any]
  int32_t (*info)(void* self, gr_batch_info_t* out, gr_error_t* err);
  /// What that batch is, which `batch` of the instance then brings: as pure a function of the
  /// request. [exec]
  int32_t (*describe)(void* self, const gr_batch_request_t* request, gr_batch_description_t* out,
                      gr_error_t* err);
} gr_batch_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_DATA_H_
