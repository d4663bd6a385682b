// SPDX-License-Identifier: Apache-2.0
// Options of a plugin: declared as data by the plugin, checked against the YAML by the host.
//
// A plugin lists name, type, default, range or choices and one line of help. The host refuses an
// unknown, misspelt, ill-typed or out-of-range key before it creates anything, and hands typed
// values over in declared order. Invariant: a plugin never sees a value that breaks its own
// declaration.
#ifndef GRADRACK_OPTIONS_H_
#define GRADRACK_OPTIONS_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  GR_OPTION_BOOL = 1,
  GR_OPTION_INT = 2,
  GR_OPTION_FLOAT = 3,
  GR_OPTION_STRING = 4,  ///< with `choices`: one of them
  GR_OPTION_PATH = 5,    ///< file or folder, relative to the working folder
  GR_OPTION_INT_LIST = 6,
  GR_OPTION_FLOAT_LIST = 7,
  GR_OPTION_STRING_LIST = 8
};
enum {
  GR_OPTION_REQUIRED = 1,       ///< no default: the YAML must give it
  GR_OPTION_MIN_EXCLUSIVE = 2,  ///< value > min instead of >=
  GR_OPTION_MAX_EXCLUSIVE = 4   ///< value < max instead of <=
};

/// One declared option. Strings are static data of the plugin.
typedef struct gr_option {
  uint32_t struct_size;
  uint32_t flags;       ///< GR_OPTION_REQUIRED, ...
  const char* name;     ///< PyTorch's word where it has one: lr, betas, eps, weight_decay
  int32_t type;         ///< GR_OPTION_*
  int32_t list_length;  ///< exact length of a list; 0: any
  const char*
      default_text;     ///< as it would stand in YAML: "1e-3", "[0.9, 0.999]"; NULL if required
  double min;           ///< numbers and list elements; -INFINITY: none
  double max;           ///< +INFINITY: none, and then `.inf` is accepted for floats
  const char* choices;  ///< "a|b|c"; NULL: any text
  const char* help;     ///< one line
} gr_option_t;

/// One checked value; the member that `type` names is filled. Valid until the instance is
/// destroyed.
typedef struct gr_option_value {
  const char* name;
  int32_t type;
  int32_t is_default;  ///< 1: not given in the YAML
  int64_t i;           ///< BOOL (0 or 1), INT
  double f;            ///< FLOAT, and INT converted
  const char* s;       ///< STRING, PATH
  const int64_t* ints;
  const double* floats;
  const char* const* strings;
  uint64_t count;  ///< length of the list
} gr_option_value_t;

/// All values of an instance, in declared order. Walk with `item_stride`.
typedef struct gr_options {
  uint32_t struct_size;
  uint32_t item_stride;  ///< bytes between two items
  const gr_option_value_t* items;
  uint64_t count;
} gr_options_t;

/// The value named `name`, or NULL when the plugin declared no such option. [any]
static inline const gr_option_value_t* gr_options_find(const gr_options_t* options,
                                                       const char* name) {
  const char* at = (const char*)options->items;
  for (uint64_t k = 0; k < options->count; ++k, at += options->item_stride) {
    const gr_option_value_t* value = (const gr_option_value_t*)(const void*)at;
    if (strcmp(value->name, name) == 0) return value;
  }
  return NULL;
}

// Rows for an options table.
#define GR_OPT_BOOL(name, def, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_BOOL, 0, def, -INFINITY, INFINITY, NULL, help }
#define GR_OPT_INT(name, def, min, max, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_INT, 0, def, min, max, NULL, help }
#define GR_OPT_FLOAT(name, def, min, max, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_FLOAT, 0, def, min, max, NULL, help }
#define GR_OPT_INTS(name, def, length, min, max, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_INT_LIST, length, def, min, max, NULL, help }
#define GR_OPT_FLOATS(name, def, length, min, max, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_FLOAT_LIST, length, def, min, max, NULL, help }
#define GR_OPT_CHOICE(name, def, choices, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_STRING, 0, def, -INFINITY, INFINITY, choices, help }
#define GR_OPT_STRING(name, def, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_STRING, 0, def, -INFINITY, INFINITY, NULL, help }
#define GR_OPT_STRINGS(name, def, help) \
  { sizeof(gr_option_t), 0, name, GR_OPTION_STRING_LIST, 0, def, -INFINITY, INFINITY, NULL, help }
#define GR_OPT_PATH_REQUIRED(name, help)                                                         \
  {                                                                                              \
    sizeof(gr_option_t), GR_OPTION_REQUIRED, name, GR_OPTION_PATH, 0, NULL, -INFINITY, INFINITY, \
        NULL, help                                                                               \
  }

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_OPTIONS_H_
