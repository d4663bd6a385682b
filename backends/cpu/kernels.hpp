// SPDX-License-Identifier: Apache-2.0
// The families of the cpu backend: one file each, one function each.
//
// float32 and products of bfloat16 are fast; float64, integers and bools are there where a training
// step needs them (scalars of the optimizer, tokens, masks). Whatever is not claimed is run by the
// next backend of the chain. To add a family, add a line here, in kernels.cpp and in
// CMakeLists.txt.
#pragma once

#include <string>

#include "backends/common/kernel.hpp"
#include "backends/cpu/context.hpp"

namespace gradrack::cpu {

void add_unary_kernels(host::KernelTable& table, const Context& context);     // unary.cpp
void add_binary_kernels(host::KernelTable& table, const Context& context);    // binary.cpp
void add_generic_kernels(host::KernelTable& table, const Context& context);   // generic.cpp
void add_matmul_kernels(host::KernelTable& table, const Context& context);    // matmul.cpp
void add_softmax_kernels(host::KernelTable& table, const Context& context);   // softmax.cpp
void add_norm_kernels(host::KernelTable& table, const Context& context);      // norm.cpp
void add_reduce_kernels(host::KernelTable& table, const Context& context);    // reduce.cpp
void add_order_by_kernels(host::KernelTable& table, const Context& context);  // order_by.cpp
void add_move_kernels(host::KernelTable& table, const Context& context);      // move.cpp
void add_slice_kernels(host::KernelTable& table, const Context& context);     // slice.cpp
void add_index_kernels(host::KernelTable& table, const Context& context);     // index.cpp

void add_bfloat16_conv_kernels(host::KernelTable& table,
                               const Context& context);  // bfloat16_conv.cpp

void add_loss_kernels(host::KernelTable& table, const Context& context);  // loss.cpp
void add_linear_loss_groups(host::KernelTable& table,
                            const Context& context);                        // linear_loss_group.cpp
void add_update_kernels(host::KernelTable& table, const Context& context);  // update.cpp
void add_attention_kernels(host::KernelTable& table, const Context& context);  // attention.cpp
void add_rotary_kernels(host::KernelTable& table, const Context& context);     // rotary.cpp
void add_flash_attention_kernels(host::KernelTable& table,
                                 const Context& context);                 // flash_attention.cpp
void add_conv_kernels(host::KernelTable& table, const Context& context);  // conv.cpp
void add_conv_weight_grad_kernels(host::KernelTable& table,
                                  const Context& context);                // conv_weight_grad.cpp
void add_pool_kernels(host::KernelTable& table, const Context& context);  // pooling.cpp
void add_batch_norm_kernels(host::KernelTable& table, const Context& context);  // batch_norm.cpp

// Groups of nodes, most wanted first.
void add_swiglu_groups(host::KernelTable& table, const Context& context);   // swiglu_groups.cpp
void add_product_groups(host::KernelTable& table, const Context& context);  // product_groups.cpp
void add_update_groups(host::KernelTable& table, const Context& context);   // update.cpp
void add_row_groups(host::KernelTable& table, const Context& context);      // row_groups.cpp

/// All of the above.
void add_all_kernels(host::KernelTable& table, const Context& context);

/// Claim of kernels that know float32 alone: every floating input and output must be it.
std::string claim_float32(const host::NodeSpec& node);
/// The same, and input 0 is float32, not an integer.
std::string claim_float32_data(const host::NodeSpec& node);
/// Of Conv and its gradients on float32: conv.cpp.
std::string claim_conv(const host::NodeSpec& node);

}  // namespace gradrack::cpu
