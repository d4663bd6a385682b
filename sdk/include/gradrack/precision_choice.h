// SPDX-License-Identifier: Apache-2.0
// gr.precision_choice/1, an extension of precision policies: settle by what the device can do.
//
// The host calls `choose` once, after the backends are chosen and before any other question or
// extension; the policy answers by it from then on. `policy->get_extension(policy->self,
// GR_EXT_PRECISION_CHOICE)` gives the table or NULL; it is valid as long as the policy. Invariant:
// equal answers of the device, equal choice.
#ifndef GRADRACK_PRECISION_CHOICE_H_
#define GRADRACK_PRECISION_CHOICE_H_

#include "gradrack/precision.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GR_EXT_PRECISION_CHOICE "gr.precision_choice/1"

/// How a device runs products of a dtype.
enum {
  GR_SUPPORT_NO = 0,         ///< not at all
  GR_SUPPORT_CONVERTED = 1,  ///< converted to another dtype and back
  GR_SUPPORT_NATIVE = 2
};

/// The host's: what the first backend of the chain says.
typedef struct gr_dtype_support {
  uint32_t struct_size;
  uint32_t flags;
  void* context;
  /// Writes GR_SUPPORT_* for matrix products with operands of `dtype`, and the backend's words for
  /// it, ended by 0 and cut to `reason_bytes` (> 0). For the time of `choose` alone. [plan]
  int32_t (*products)(void* context, gr_dtype_t dtype, int32_t* out, char* reason,
                      uint32_t reason_bytes, gr_error_t* err);
} gr_dtype_support_t;

typedef struct gr_precision_choice {
  uint32_t struct_size;
  uint32_t flags;
  void* self;
  /// Settles, and writes what was chosen and why, in one line ended by 0 and cut to `reason_bytes`
  /// (> 0). [plan]
  int32_t (*choose)(void* self, const gr_dtype_support_t* support, char* reason,
                    uint32_t reason_bytes, gr_error_t* err);
} gr_precision_choice_t;

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_PRECISION_CHOICE_H_
