// SPDX-License-Identifier: Apache-2.0
// In front of every program: rules of arithmetic, and how a tensor comes in.
//
// A tensor is a buffer and a place in it in bytes (the host gives tensors parts of one large
// buffer). Every kernel begins with the stream's status and does nothing when an error is kept there.
#pragma OPENCL FP_CONTRACT OFF
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define STATUS global const int* restrict status
#define STOPPED (status[0] != 0)
#define BUFFER(name) global uchar *name##_base, const ulong name##_offset
#define AT(type, name) ((global type*)(name##_base + name##_offset))
