// SPDX-License-Identifier: Apache-2.0
// The families of the libtorch backends: one file each, one function each.
//
// A family adds its entries to the table that the plugin hands to make_host_backend. Invariant of
// all of them: no header of ATen is needed to use this one. What ATen lacks, or does differently
// from ONNX, is refused with the reason, and the next backend of the chain takes it. To add a
// family, add a line here, in kernels.cpp and in CMakeLists.txt.
#pragma once

#include "backends/common/kernel.hpp"

namespace gradrack::libtorch {

void add_unary_kernels(host::KernelTable& table);       // unary.cpp: Neg, Exp, ...
void add_activation_kernels(host::KernelTable& table);  // activation.cpp: Gelu, Swish, ...
void add_binary_kernels(host::KernelTable& table);      // binary.cpp: Add, Max, Equal, Where, ...
void add_matmul_kernels(host::KernelTable& table);      // matmul.cpp: gradrack.FusedMatMul
void add_move_kernels(host::KernelTable& table);        // move.cpp: Cast, Transpose, Expand, ...
void add_slice_kernels(host::KernelTable& table);       // slice.cpp: Slice, Pad, Concat, Split
void add_index_kernels(host::KernelTable& table);       // index.cpp: Gather, ScatterElements, ...
void add_reduce_kernels(host::KernelTable& table);      // reduce.cpp: ReduceSum, SumSquares, ...
void add_softmax_kernels(host::KernelTable& table);     // softmax.cpp: Softmax, losses
void add_norm_kernels(host::KernelTable& table);        // norm.cpp: layer and RMS norm
void add_batch_norm_kernels(host::KernelTable& table);  // batch_norm.cpp: batch and group norm
void add_conv_kernels(host::KernelTable& table);        // conv.cpp: Conv and its two gradients
void add_pool_kernels(host::KernelTable& table);        // pool.cpp: MaxPool, AveragePool
void add_attention_kernels(host::KernelTable& table);   // attention.cpp: flash attention
void add_rotary_kernels(host::KernelTable& table);      // rotary.cpp: rotary embedding, masks
void add_update_kernels(host::KernelTable& table);      // update.cpp: gradrack.AdamW, Dropout

/// All of the above.
void add_all_kernels(host::KernelTable& table);

/// Of the library: "LibTorch 2.11.0".
std::string library_text();

}  // namespace gradrack::libtorch
