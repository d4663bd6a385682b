// SPDX-License-Identifier: Apache-2.0
// RotaryEmbedding, gradrack.CausalMask and Trilu, made of products and copies between views.
#include <ATen/ops/addcmul.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tril.h>
#include <ATen/ops/triu.h>
#include <ATen/ops/where.h>

#include <limits>

#include "backends/libtorch/indices.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// A cache as ATen multiplies it with [B, H, T, D/2]; rows are picked where positions are given.
struct Cache {
  at::Tensor rows, picked, factor;

  Cache(const NodeSpec& node, size_t k, const Dims& batch_time, Frame& f) : rows(f.in(k)) {
    if (!node.has_input(3)) {
      factor = rows.unsqueeze(1);
      return;
    }
    const int64_t half = rows.size(1);
    picked = f.scratch({batch_time[0] * batch_time[1], half}, rows.scalar_type());
    factor = picked.view({batch_time[0], 1, batch_time[1], half});
  }
};

/// Halves of the features that are turned: (first, second) of each pair.
std::pair<at::Tensor, at::Tensor> pairs(const at::Tensor& x, int64_t half, bool interleaved) {
  const at::Tensor turned = x.narrow(3, 0, 2 * half);
  if (!interleaved) return {turned.narrow(3, 0, half), turned.narrow(3, half, half)};
  return {turned.slice(3, 0, 2 * half, 2), turned.slice(3, 1, 2 * half, 2)};
}

at::Tensor by_heads(const at::Tensor& x, int64_t heads) {
  if (x.dim() == 4) return x;
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Body build_rotary(const NodeSpec& node, Frame& f) {
  const at::Tensor x = by_heads(f.in(0), node.get_int("num_heads"));
  at::Tensor y = by_heads(f.out(0), node.get_int("num_heads"));
  const Dims batch_time = {x.size(0), x.size(2)};
  Cache cos(node, 1, batch_time, f), sin(node, 2, batch_time, f);
  const int64_t half = cos.rows.size(-1), rest = x.size(3) - 2 * half;
  const auto [a, b] = pairs(x, half, node.get_int("interleaved") != 0);
  const auto [to_a, to_b] = pairs(y, half, node.get_int("interleaved") != 0);
  std::optional<Indices> positions;
  if (node.has_input(3)) positions.emplace(node, 3, cos.rows.size(0), f);
  return [=, a = a, b = b, to_a = to_a, to_b = to_b](const Call& call) mutable {
    if (positions.has_value()) {
      positions->read(call);
      at::index_select_out(cos.picked, cos.rows, 0, positions->flat());
      at::index_select_out(sin.picked, sin.rows, 0, positions->flat());
    }
    at::mul_out(to_a, a, cos.factor);
    to_a.addcmul_(b, sin.factor, -1);
    at::mul_out(to_b, a, sin.factor);
    to_b.addcmul_(b, cos.factor);
    if (rest > 0) y.narrow(3, 2 * half, rest).copy_(x.narrow(3, 2 * half, rest));
  };
}

Body build_causal_mask(const NodeSpec&, Frame& f) {
  const at::Tensor x = f.in(0);
  const at::Tensor seen = at::ones({x.size(-2), x.size(-1)}, at::kBool).tril();
  const at::Tensor hidden = at::full({}, -std::numeric_limits<double>::infinity(), x.options());
  return
      [x, y = f.out(0), seen, hidden](const Call&) mutable { at::where_out(y, seen, x, hidden); };
}

Body build_trilu(const NodeSpec& node, Frame& f) {
  const bool upper = node.get_int("upper") != 0, has_k = node.has_input(1);
  return [x = f.in(0), y = f.out(0), upper, has_k](const Call& call) mutable {
    const int64_t k = has_k ? call.scalar<int64_t>(1) : 0;
    if (upper) {
      at::triu_out(y, x, k);
    } else {
      at::tril_out(y, x, k);
    }
  };
}

}  // namespace

void add_rotary_kernels(host::KernelTable& table) {
  add(table, "RotaryEmbedding", claim_wide, build_rotary);
  add(table, "gradrack.CausalMask", claim_reals, build_causal_mask, {{0}});
  add(table, "Trilu", claim_any, build_trilu);
}

}  // namespace gradrack::libtorch
