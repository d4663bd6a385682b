// SPDX-License-Identifier: Apache-2.0
// The tensor that crosses the ABI: DLPack's DLTensor, and the dtype codes used by graphs.
//
// The layout is that of DLPack 1.x (https://dmlc.github.io/dlpack). When <dlpack/dlpack.h> was
// included before this file its types are used, otherwise equal ones are declared here.
// Invariant: every tensor the host passes is dense, row-major, with non-NULL strides (in elements;
// those of dims of size 1 say nothing) and aligned as the backend's device info asks; byte_offset
// is 0 unless the backend's memory is GR_MEMORY_HANDLE.
// Dims legend for all of Gradrack: B batch, T tokens, C channels, H heads, V vocabulary, N rows.
#ifndef GRADRACK_TENSOR_H_
#define GRADRACK_TENSOR_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLOpenCL = 4, kDLVulkan = 7, kDLExtDev = 12 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;
typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;
typedef struct {
  uint8_t code;  ///< DLDataTypeCode
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  ///< in elements
  uint64_t byte_offset;
} DLTensor;
#endif

/// dtype of a value in a graph: one number, code * 256 + bits of DLPack's pair.
typedef int32_t gr_dtype_t;
#define GR_DTYPE(code, bits) ((code)*256 + (bits))
enum {
  GR_INT8 = GR_DTYPE(0, 8),
  GR_INT32 = GR_DTYPE(0, 32),
  GR_INT64 = GR_DTYPE(0, 64),
  GR_UINT8 = GR_DTYPE(1, 8),
  GR_FLOAT16 = GR_DTYPE(2, 16),
  GR_FLOAT32 = GR_DTYPE(2, 32),
  GR_FLOAT64 = GR_DTYPE(2, 64),
  GR_BFLOAT16 = GR_DTYPE(4, 16),
  GR_BOOL = GR_DTYPE(6, 8)
};

static inline gr_dtype_t gr_dtype_of(DLDataType t) { return GR_DTYPE(t.code, t.bits); }
static inline DLDataType gr_dl_dtype(gr_dtype_t t) {
  DLDataType d;
  d.code = (uint8_t)(t / 256);
  d.bits = (uint8_t)(t % 256);
  d.lanes = 1;
  return d;
}
static inline int64_t gr_dtype_bytes(gr_dtype_t t) { return (t % 256) / 8; }

#ifdef __cplusplus
}
#endif
#endif  // GRADRACK_TENSOR_H_
