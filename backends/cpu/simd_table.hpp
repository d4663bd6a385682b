// SPDX-License-Identifier: Apache-2.0
// Fills a Simd table from the loops of this translation unit's instruction set. Included by
// simd_<set>.cpp alone; internal linkage: see simd_vector.hpp.
#pragma once

#include "backends/cpu/simd_attention.hpp"
#include "backends/cpu/simd_bfloat16.hpp"
#include "backends/cpu/simd_channels.hpp"
#include "backends/cpu/simd_columns.hpp"
#include "backends/cpu/simd_conv.hpp"
#include "backends/cpu/simd_elementwise.hpp"
#include "backends/cpu/simd_float16.hpp"
#include "backends/cpu/simd_panels.hpp"
#include "backends/cpu/simd_rows.hpp"

namespace gradrack::cpu {
namespace {

constexpr Simd make_table(const char* name) {
  Simd t{};
  t.name = name;
  const UnaryLoop unary[] = {
      unary_loop<NegOp>,       unary_loop<AbsOp>,   unary_loop<SqrtOp>,      unary_loop<ExpOp>,
      unary_loop<LogOp>,       unary_loop<ErfOp>,   unary_loop<TanhOp>,      unary_loop<SigmoidOp>,
      unary_loop<ReluOp>,      unary_loop<SignOp>,  unary_loop<FloorOp>,     unary_loop<GeluOp>,
      unary_loop<GeluTanhOp>,  unary_loop<SwishOp>, unary_loop<LeakyReluOp>, unary_loop<SoftplusOp>,
      unary_loop<ReciprocalOp>};
  static_assert(sizeof unary == sizeof t.unary, "one loop for each Unary, in its order");
  for (int k = 0; k < static_cast<int>(Unary::kCount); ++k) t.unary[k] = unary[k];
  const BinaryLoop binary[] = {
      binary_loop<AddOp>,      binary_loop<SubOp>,          binary_loop<MulOp>,
      binary_loop<DivOp>,      binary_loop<MaxOp>,          binary_loop<MinOp>,
      binary_loop<GeluGradOp>, binary_loop<GeluTanhGradOp>, binary_loop<SwishGradOp>};
  static_assert(sizeof binary == sizeof t.binary, "one loop for each Binary, in its order");
  for (int k = 0; k < static_cast<int>(Binary::kCount); ++k) t.binary[k] = binary[k];
  const CompareLoop compare[] = {compare_loop<EqualOp>, compare_loop<LessOp>,
                                 compare_loop<LessOrEqualOp>, compare_loop<GreaterOp>,
                                 compare_loop<GreaterOrEqualOp>};
  static_assert(sizeof compare == sizeof t.compare, "one loop for each Compare, in its order");
  for (int k = 0; k < static_cast<int>(Compare::kCount); ++k) t.compare[k] = compare[k];
  t.select = select_loop;
  t.from_bfloat16 = from_bfloat16_loop;
  t.to_bfloat16 = to_bfloat16_loop;
  t.from_float16 = from_float16_loop;
  t.to_float16 = to_float16_loop;
  t.round_bfloat16 = round_bfloat16_loop;
  t.add_scaled = add_scaled_loop;
  t.sum = sum_row;
  t.sum_squares = sum_squares_row;
  t.dot = dot_row;
  t.max = max_row;
  t.add_to_columns = add_to_columns_row;
  t.max_of_columns = max_of_columns_row;
  t.softmax = softmax_row;
  t.log_softmax = log_softmax_row;
  t.softmax_grad = softmax_grad_row;
  t.log_softmax_grad = log_softmax_grad_row;
  t.log_sum_exp = log_sum_exp_row;
  t.exp_shifted = exp_shifted_row;
  t.statistics = statistics_row;
  t.norm = norm_row;
  t.norm_grad = norm_grad_row;
  t.norm_scale_grad = norm_scale_grad_row;
  t.squares_about = squares_about_row;
  t.scale_channel = scale_plane;
  t.channel_grad_sums = grad_sums_plane;
  t.channel_input_grad = input_grad_plane;
  t.adamw = adamw_row;
  t.dropout = dropout_groups;
  t.conv = make_conv_loops();
  t.panel = kPanel;
  t.panel_product = panel_product;
  t.pack_rows = pack_rows;
  t.pack_columns = pack_columns;
  t.exp_weights = exp_weights_row;
  t.weights_grad = weights_grad_row;
  t.rotate_halves = rotate_halves_row<float>;
  t.rotate_halves_bfloat16 = rotate_halves_row<uint16_t>;
  t.rotate_pairs = rotate_pairs_row;
  t.add_exp_of_columns = add_exp_of_columns_row;
  t.softmax_of_columns = softmax_of_columns_row;
  return t;
}

}  // namespace
}  // namespace gradrack::cpu
