// SPDX-License-Identifier: Apache-2.0
// Status codes and the error record that every call of the Gradrack ABI uses.
//
// First header of the flow; it depends on nothing. A call returns an int32_t status; details go to
// a gr_error_t that the CALLER owns, so that reporting an error needs no allocation, no
// thread-local and no negotiated table. The invariant: gr_error_t is 512 bytes for ever.
#ifndef GRADRACK_STATUS_H_
#define GRADRACK_STATUS_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Status of a call. Same numbers on both sides of the wall. Only GR_UNSUPPORTED may make the host
/// try the next entry of a fallback chain; every other non-zero code stops the run.
enum {
  GR_OK = 0,
  GR_UNSUPPORTED = 1,       ///< this object cannot do it here: the host may fall back, saying why
  GR_INVALID_ARGUMENT = 2,  ///< the caller passed something wrong: a bug or a wrong configuration
  GR_NOT_FOUND = 3,         ///< a file, plugin, key or symbol is not there
  GR_FAILED_PRECONDITION = 4,  ///< right arguments, wrong moment or wrong state
  GR_OUT_OF_RANGE = 5,  ///< a value outside what it may be, such as a token beyond the vocabulary
  GR_OUT_OF_MEMORY = 6,
  GR_IO = 7,         ///< reading or writing failed
  GR_VERSION = 8,    ///< versions of the ABI or of a format do not meet
  GR_NONFINITE = 9,  ///< a NaN or an infinity where a finite number is needed
  GR_CANCELLED = 10,
  GR_INTERNAL = 11  ///< a bug on the reporting side
};

enum { GR_ERROR_BYTES = 512, GR_ERROR_FIELD_BYTES = 64, GR_ERROR_MESSAGE_BYTES = 432 };

/// What went wrong. Caller-owned and zeroed by the caller; the callee fills it only when it returns
/// non-zero. Text is UTF-8, ends with 0 and is cut when too long.
typedef struct gr_error {
  int32_t code;       ///< same as the returned status
  int32_t domain;     ///< number of the plugin's own choosing; 0 when unused
  int32_t retryable;  ///< 1: the same call may succeed later
  int32_t reserved;
  char field[GR_ERROR_FIELD_BYTES];      ///< option, operator or member at fault; may be empty
  char message[GR_ERROR_MESSAGE_BYTES];  ///< what, got, wanted, what to do
} gr_error_t;

/// Fills `err` (may be NULL) and returns `code`, so that a callee can `return gr_fail(...)`.
static inline int32_t gr_fail(gr_error_t* err, int32_t code, const char* field,
                              const char* message) {
  if (err != NULL) {
    err->code = code;
    (void)snprintf(err->field, sizeof err->field, "%s", field != NULL ? field : "");
    (void)snprintf(err->message, sizeof err->message, "%s", message != NULL ? message : "");
  }
  return code;
}

/// True when `member` lies inside what the other side said it filled: the test for every member
/// that was added after 1.0.
#define GR_HAS(pointer, member) \
  ((pointer)->struct_size >=    \
   (uint32_t)((const char*)(&(pointer)->member + 1) - (const char*)(pointer)))

#ifdef __cplusplus
}  // extern "C"
static_assert(sizeof(gr_error_t) == GR_ERROR_BYTES, "gr_error_t is frozen");
#else
_Static_assert(sizeof(gr_error_t) == GR_ERROR_BYTES, "gr_error_t is frozen");
#endif
#endif  // GRADRACK_STATUS_H_
