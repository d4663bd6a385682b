// SPDX-License-Identifier: Apache-2.0
// The families of the reference backend: one file each, one function each.
//
// A family adds its entries to the table that the plugin hands to make_host_backend. Invariant of
// all of them: plain loops, float32 accumulated in double, any rank, any broadcast, zero-size
// shapes: slow and obviously right. bfloat16 is no family's matter: kernels.cpp adds it to all. To
// add a family, add a line here, in kernels.cpp and in
// CMakeLists.txt.
#pragma once

#include "backends/common/kernel.hpp"

namespace gradrack::reference {

void add_unary_kernels(host::KernelTable& table);       // unary.cpp: Neg, Exp, ...
void add_activation_kernels(host::KernelTable& table);  // activation.cpp: Gelu, Swish, Clip, ...
void add_cast_kernels(host::KernelTable& table);        // cast.cpp
void add_binary_kernels(host::KernelTable& table);      // binary.cpp: Add, Max, Equal, Where, ...
void add_matmul_kernels(host::KernelTable& table);      // matmul.cpp: gradrack.FusedMatMul
void add_shape_kernels(host::KernelTable& table);       // shape.cpp: Transpose, Expand, Copy
void add_slice_kernels(host::KernelTable& table);       // slice.cpp: Slice, Pad, Concat, Split
void add_index_kernels(host::KernelTable& table);       // index.cpp: Gather, ScatterElements, ...
void add_order_by_kernels(host::KernelTable& table);    // order_by.cpp: TopK
void add_reduce_kernels(host::KernelTable& table);      // reduce.cpp: ReduceSum, ArgMax, ...
void add_softmax_kernels(host::KernelTable& table);  // softmax.cpp: Softmax, LogSoftmax, gradients
void add_norm_kernels(host::KernelTable& table);     // norm.cpp: layer, RMS and group norm
void add_batch_norm_kernels(host::KernelTable& table);  // batch_norm.cpp
void add_conv_kernels(host::KernelTable& table);        // conv.cpp: Conv and its two gradients
void add_pool_kernels(host::KernelTable& table);        // pool.cpp: MaxPool, AveragePool, gradients
void add_attention_kernels(host::KernelTable& table);   // attention.cpp: Attention, rotary, masks
void add_loss_kernels(host::KernelTable& table);        // loss.cpp: cross-entropy
void add_random_kernels(host::KernelTable& table);      // random.cpp: gradrack.Dropout, ...
void add_update_kernels(host::KernelTable& table);      // update.cpp: gradrack.AdamW, SumSquares

/// All of the above.
void add_all_kernels(host::KernelTable& table);

}  // namespace gradrack::reference
