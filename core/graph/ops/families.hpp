// SPDX-License-Identifier: Apache-2.0
// The families of built-in operators: one file each, one function each.
//
// To add an operator, add its entry to the family it belongs to. To add a family, add a line here
// and in families.cpp.
#pragma once

#include "core/graph/op.hpp"

namespace gradrack {

Status add_unary_ops(OpRegistry& ops);       // unary.cpp: Neg, Exp, Tanh, Gelu, ...
Status add_binary_ops(OpRegistry& ops);      // binary.cpp: Add, Mul, Pow, Min, comparisons, Where
Status add_arithmetic_ops(OpRegistry& ops);  // arithmetic.cpp: Mean, Mod, Round, ...
Status add_more_activation_ops(OpRegistry& ops);  // activation_more.cpp: Elu, Mish, PRelu, ...
Status add_trigonometry_ops(OpRegistry& ops);     // trigonometry.cpp: Tan, Asin, Sinh, ...
Status add_matmul_ops(OpRegistry& ops);           // matmul.cpp: MatMul, Gemm, FusedMatMul
Status add_shape_ops(OpRegistry& ops);      // shape.cpp: Reshape, Transpose, Squeeze, Expand, ...
Status add_slice_ops(OpRegistry& ops);      // slice.cpp: Slice, Pad, Concat, Split
Status add_index_ops(OpRegistry& ops);      // index.cpp: Gather, GatherElements, ScatterElements
Status add_index_nd_ops(OpRegistry& ops);   // index_nd.cpp: GatherND, ScatterND
Status add_fill_ops(OpRegistry& ops);       // fill.cpp: ConstantOfShape, Range, OneHot, Tile, ...
Status add_scan_ops(OpRegistry& ops);       // scan.cpp: CumSum, CumProd
Status add_order_by_ops(OpRegistry& ops);   // order_by.cpp: TopK
Status add_rearrange_ops(OpRegistry& ops);  // rearrange.cpp: DepthToSpace, ReverseSequence, ...
Status add_reduce_ops(OpRegistry& ops);     // reduce.cpp: ReduceSum, ReduceMean, ReduceMax
Status add_softmax_ops(OpRegistry& ops);    // softmax.cpp: Softmax, LogSoftmax and their gradients
Status add_norm_ops(OpRegistry& ops);       // norm.cpp: LayerNormalization, RMSNormalization, Group
Status add_batch_norm_ops(OpRegistry& ops);  // batch_norm.cpp
Status add_conv_ops(OpRegistry& ops);        // conv.cpp: Conv and its two gradients
Status add_pool_ops(OpRegistry& ops);        // pool.cpp: MaxPool, AveragePool, GlobalAveragePool
Status add_more_norm_ops(OpRegistry& ops);   // norm_more.cpp: InstanceNormalization, LRN, ...
Status add_conv_transpose_ops(OpRegistry& ops);  // conv_transpose.cpp
Status add_resize_ops(OpRegistry& ops);          // resize.cpp
Status add_pad_mode_ops(OpRegistry& ops);        // pad_mode.cpp: gradrack.PadMode
Status add_grid_sample_ops(OpRegistry& ops);     // grid_sample.cpp: GridSample, AffineGrid
Status add_einsum_ops(OpRegistry& ops);          // einsum.cpp
Status add_recurrent_ops(OpRegistry& ops);       // recurrent.cpp: RNN, GRU, LSTM
Status add_attention_ops(OpRegistry& ops);       // attention.cpp: Attention, CausalMask, Trilu
Status add_rotary_ops(OpRegistry& ops);          // rotary.cpp: RotaryEmbedding
Status add_loss_ops(OpRegistry& ops);            // loss.cpp: SoftmaxCrossEntropyLoss
Status add_random_ops(OpRegistry& ops);          // random.cpp: Dropout
Status add_order_ops(OpRegistry& ops);           // order.cpp: gradrack.After
Status add_update_ops(OpRegistry& ops);          // update.cpp: gradrack.AdamW, gradrack.SumSquares

/// All of the above.
Status add_builtin_ops(OpRegistry& ops);

}  // namespace gradrack
