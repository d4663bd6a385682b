// SPDX-License-Identifier: Apache-2.0
// AttentionWriter: see attention_parts.hpp. Methods stand in the order in which their nodes run.
#include "core/graph/ops/attention_parts.hpp"

#include <cmath>
#include <limits>

#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// [B, T, H*D] as [B, H, T, D].
Result<Shape> unpack(const Shape& shape, int64_t heads, const char* name) {
  if (heads < 1) {
    return invalid_argument("3-D inputs need q_num_heads and kv_num_heads");
  }
  if (!shape[2].is_number() || shape[2].number() % heads != 0) {
    return invalid_argument(std::string(name) + ": " + std::to_string(heads) +
                            " heads must divide the last dimension, got " + shape[2].text());
  }
  return Shape{shape[0], Dim(heads), shape[1], Dim(shape[2].number() / heads)};
}

}  // namespace

Result<Heads> read_heads(const Attrs& attrs, const Shape& q, const Shape& k, const Shape& v) {
  Heads h{q, k, v, q.size() == 3};
  if (q.size() != k.size() || q.size() != v.size() || (q.size() != 3 && q.size() != 4)) {
    return invalid_argument("Q, K and V must all be 4-D [B, H, T, D] or all 3-D [B, T, H*D]");
  }
  if (h.packed) {
    GR_ASSIGN(h.q, unpack(q, attrs.get_int("q_num_heads"), "Q"));
    GR_ASSIGN(h.k, unpack(k, attrs.get_int("kv_num_heads"), "K"));
    GR_ASSIGN(h.v, unpack(v, attrs.get_int("kv_num_heads"), "V"));
  }
  return h;
}

AttentionWriter::AttentionWriter(Emitter& e, const Attrs& attrs, ValueId q, ValueId k, ValueId v,
                                 Heads heads)
    : e_(e), attrs_(attrs), h_(std::move(heads)), groups_(h_.q[1].number() / h_.k[1].number()) {
  q_ = to_heads(q, h_.q);
  k_ = to_heads(k, h_.k);
  v_ = to_heads(v, h_.v);
}

ValueId AttentionWriter::write(ValueId mask) {
  const ValueId capped = softcap(wide(e_.matmul(rows(q_), k_, false, true, scale())));
  const Shape y{h_.q[0], h_.q[1], h_.q[2], h_.v[3]};
  return from_heads(e_.matmul(rows(like_inputs(weights(capped, mask))), v_), y);
}

// With weights P, dP = gy V^T and dS = P (dP - sum(dP P)): gradients of a product and of softmax.
AttentionGrads AttentionWriter::write_gradients(ValueId gy, ValueId mask, bool of_mask) {
  const ValueId capped = softcap(wide(e_.matmul(rows(q_), k_, false, true, scale())));
  const ValueId p = rows(weights(capped, mask));
  const ValueId g = rows(to_heads(gy, {h_.q[0], h_.q[1], h_.q[2], h_.v[3]}));
  AttentionGrads grads;
  grads.v = from_heads(e_.matmul(like_inputs(p), g, true), h_.v);
  const ValueId gp = wide(e_.matmul(g, v_, false, true));
  ValueId gs = e_.own("SoftmaxGrad", {gp, p}, {{"axis", int64_t{-1}}});
  if (of_mask) grads.mask = mask_gradient(gs, mask);
  const double cap = attrs_.get_float("softcap");
  if (cap != 0) {
    const ValueId tanh = e_.mul(capped, 1.0 / cap);
    gs = e_.mul(gs, e_.sub(1.0, e_.mul(tanh, tanh)));
  }
  gs = like_inputs(gs);
  grads.q = from_heads(e_.matmul(gs, k_, false, false, scale()), h_.q);
  grads.k = from_heads(e_.matmul(gs, rows(q_), true, false, scale()), h_.k);
  return grads;
}

double AttentionWriter::scale() const {
  return attrs_.get_float("scale", 1.0 / std::sqrt(static_cast<double>(h_.q[3].number())));
}

/// softmax_precision: what is less than float32 becomes it, between the two products.
ValueId AttentionWriter::wide(ValueId x) {
  return e_.type(x).dtype == GR_FLOAT64 ? x : e_.cast(x, GR_FLOAT32);
}

ValueId AttentionWriter::like_inputs(ValueId x) { return e_.cast(x, e_.type(q_).dtype); }

ValueId AttentionWriter::to_heads(ValueId x, const Shape& shape) {
  if (!h_.packed) return x;
  const ValueId split = e_.reshape(x, {0, 0, shape[1].number(), shape[3].number()});
  return e_.transpose(split, {0, 2, 1, 3});
}

/// [B, H, T, n] or [B, KV, G, T, n] as [B, KV, G*T, n]: the queries of a group under each other.
ValueId AttentionWriter::rows(ValueId x) {
  if (groups_ == 1 || e_.rank(x) < 4) return x;
  const bool split = e_.rank(x) == 5;
  if (!split && e_.shape(x)[1] == h_.k[1]) return x;
  const ValueId last = dim_of(e_, x, static_cast<int64_t>(e_.rank(x)) - 1);
  return e_.reshape(x, shape_from(e_, {dim_of(e_, x, 0), e_.ints({h_.k[1].number(), -1}), last}));
}

/// Scores with an axis of queries: [B, KV, G, T, S]; [B, H, T, S] when groups are single.
ValueId AttentionWriter::per_query(ValueId scores) {
  if (groups_ == 1) return scores;
  return e_.reshape(scores, shape_from(e_, {dim_of(e_, q_, 0), e_.ints({h_.k[1].number(), groups_}),
                                            dim_of(e_, q_, 2), dim_of(e_, k_, 2)}));
}

ValueId AttentionWriter::softcap(ValueId scores) {
  const double cap = attrs_.get_float("softcap");
  return cap == 0 ? scores : e_.mul(e_.op("Tanh", {e_.mul(scores, 1.0 / cap)}), cap);
}

/// The mask's head axis split like the scores' when it has one.
ValueId AttentionWriter::grouped_mask(ValueId mask) {
  const size_t rank = e_.rank(mask);
  if (groups_ == 1 || rank < 3) return mask;
  const int64_t axis = static_cast<int64_t>(rank) - 3;
  if (e_.shape(mask)[static_cast<size_t>(axis)].is_one()) return e_.unsqueeze(mask, {axis});
  std::vector<ValueId> pieces;
  if (rank == 4) pieces.push_back(dim_of(e_, mask, 0));
  pieces.push_back(e_.ints({h_.k[1].number(), groups_}));
  pieces.push_back(dim_of(e_, mask, axis + 1));
  pieces.push_back(dim_of(e_, mask, axis + 2));
  return e_.reshape(mask, shape_from(e_, pieces));
}

/// Softmax under a mask; rows without any key become zeros instead of 0/0.
ValueId AttentionWriter::masked_softmax(ValueId scores, ValueId mask) {
  const ValueId grouped = grouped_mask(mask);
  const ValueId nothing = e_.like(scores, kMinusInfinity), zero = e_.like(scores, 0.0);
  scores = e_.type(mask).dtype == GR_BOOL ? e_.where(grouped, scores, nothing)
                                          : e_.add(scores, wide(grouped));
  const ValueId blind = e_.op("Equal", {e_.reduce_max(scores, {-1}, true), nothing});
  const ValueId finite = e_.where(blind, zero, scores);
  const ValueId weights = e_.op("Softmax", {finite}, {{"axis", int64_t{-1}}});
  return e_.where(blind, zero, weights);
}

/// Softmax of the scores under the masks, an axis of queries in between where there is a mask.
ValueId AttentionWriter::weights(ValueId scores, ValueId mask) {
  const bool causal = attrs_.get_int("is_causal") != 0;
  if (causal || mask != GR_NO_VALUE) scores = per_query(scores);
  if (causal) scores = e_.own("CausalMask", {scores});
  if (mask != GR_NO_VALUE) return masked_softmax(scores, mask);
  return e_.op("Softmax", {scores}, {{"axis", int64_t{-1}}});
}

/// [B, KV, rows, n] as `shape` [B, heads, length, n], or in the packed layout of the inputs.
ValueId AttentionWriter::from_heads(ValueId y, const Shape& shape) {
  const int64_t heads = shape[1].number(), size = shape[3].number();
  if (groups_ != 1 && heads != h_.k[1].number()) {
    y = e_.reshape(y, shape_from(e_, {dim_of(e_, q_, 0), e_.ints({heads}), dim_of(e_, q_, 2),
                                      e_.ints({size})}));
  }
  return h_.packed ? e_.reshape(e_.transpose(y, {0, 2, 1, 3}), {0, 0, heads * size}) : y;
}

/// Scores are [B, KV, G*T, S] here; an added mask has them by head.
ValueId AttentionWriter::mask_gradient(ValueId gs, ValueId mask) {
  const ValueId by_head =
      e_.reshape(gs, shape_from(e_, {dim_of(e_, q_, 0), e_.ints({h_.q[1].number()}),
                                     dim_of(e_, q_, 2), dim_of(e_, k_, 2)}));
  return e_.cast(e_.sum_to(by_head, mask), e_.type(mask).dtype);
}

}  // namespace gradrack
