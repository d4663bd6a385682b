// SPDX-License-Identifier: Apache-2.0
// Operator entries: Attention, and what it needs of its own: gradrack.CausalMask and Trilu.
//
// Query heads of one group lie side by side along the rows of one batched product with their key
// head, so grouped-query attention copies no keys. Order as in ONNX since its correction (onnx pull
// request 7867): scale, softcap, causal mask, attn_mask, softmax. Invariant: a query that sees no
// key at all gives zeros and zero gradients (onnx pull request 8068), never NaN.
#include <cmath>
#include <limits>

#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Q, K and V as [batch, heads, length, size], whatever the layout they came in.
struct Heads {
  Shape q, k, v;
  bool packed = false;  // the inputs are [batch, length, heads * size]
};

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

/// Heads and sizes must be numbers that fit each other.
Status check_heads(const Heads& h) {
  for (const Dim& dim : {h.q[1], h.q[3], h.k[1], h.k[3], h.v[1], h.v[3]}) {
    if (!dim.is_number()) return invalid_argument("head counts and sizes must be numbers");
  }
  if (!(h.q[0] == h.k[0]) || !(h.k[0] == h.v[0]) || !(h.k[2] == h.v[2])) {
    return invalid_argument("Q, K and V must share the batch, K and V the length, got " +
                            to_text(h.q) + ", " + to_text(h.k) + ", " + to_text(h.v));
  }
  if (!(h.k[1] == h.v[1]) || h.k[1].number() < 1 || h.q[1].number() % h.k[1].number() != 0) {
    return invalid_argument("the key/value heads must divide the query heads, got " +
                            h.k[1].text() + ", " + h.v[1].text() + " and " + h.q[1].text());
  }
  if (!(h.q[3] == h.k[3]) || h.q[3].number() < 1) {
    return invalid_argument("Q and K must have one head size, got " + h.q[3].text() + " and " +
                            h.k[3].text());
  }
  return {};
}

/// What this operator leaves out, said while building.
Status check_unsupported(const InferContext& c) {
  if (c.has_input(4) || c.has_input(5)) {
    return unsupported("past_key and past_value: caching of keys is not supported");
  }
  if (c.output_count() > 1) {
    return unsupported(
        "gives Y alone: ask for one output (present_key, present_value and "
        "qk_matmul_output are not supported)");
  }
  if (c.attrs().get_int("qk_matmul_output_mode") != 0) {
    return unsupported("qk_matmul_output_mode must be 0");
  }
  const int64_t precision = c.attrs().get_int("softmax_precision", 1);
  if (precision != 1) return unsupported("softmax_precision must be 1 (float32) or left out");
  return {};
}

/// attn_mask broadcasts to [B, H, T, S] from the right.
Status check_mask(const InferContext& c, const Heads& h) {
  const Type& mask = c.input(3);
  const Shape full{h.q[0], h.q[1], h.q[2], h.k[2]};
  if (mask.dtype != GR_BOOL && mask.dtype != c.input(0).dtype) {
    return invalid_argument("attn_mask must be bool or of Q's dtype, got " + to_text(mask));
  }
  bool fits = mask.shape.size() >= 1 && mask.shape.size() <= 4;
  for (size_t k = 0; fits && k < mask.shape.size(); ++k) {
    const Dim& want = full[4 - mask.shape.size() + k];
    fits = mask.shape[k].is_one() || mask.shape[k] == want;
  }
  if (fits) return {};
  return invalid_argument("attn_mask must broadcast to " + to_text(full) + ", got " +
                          to_text(mask.shape));
}

Status infer_attention(InferContext& c) {
  GR_TRY(check_unsupported(c));
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  for (size_t k = 1; k < 3; ++k) {
    GR_TRY(want_type(c, k, Type{c.input(0).dtype, c.input(k).shape}, k == 1 ? "K" : "V"));
  }
  GR_ASSIGN(const Heads h,
            read_heads(c.attrs(), c.input(0).shape, c.input(1).shape, c.input(2).shape));
  GR_TRY(check_heads(h));
  if (c.has_input(3)) GR_TRY(check_mask(c, h));
  if (c.attrs().get_float("softcap") < 0) return invalid_argument("softcap must not be negative");
  Shape y{h.q[0], h.q[1], h.q[2], h.v[3]};
  if (h.packed) y = {h.q[0], h.q[2], h.q[1] * h.v[3]};
  c.set_output(0, Type{c.input(0).dtype, std::move(y)});
  return {};
}

/// Pieces of the decomposition, in the order in which they run.
class AttentionWriter {
 public:
  AttentionWriter(Emitter& e, const Attrs& attrs, ValueId q, ValueId k, ValueId v, Heads heads)
      : e_(e), attrs_(attrs), h_(std::move(heads)), groups_(h_.q[1].number() / h_.k[1].number()) {
    q_ = to_heads(q, h_.q);
    k_ = to_heads(k, h_.k);
    v_ = to_heads(v, h_.v);
  }

  ValueId write(ValueId mask) {
    ValueId scores = softcap(e_.matmul(rows(q_), k_, false, true, scale()));
    const bool causal = attrs_.get_int("is_causal") != 0;
    if (causal || mask != GR_NO_VALUE) scores = per_query(scores);
    if (causal) scores = e_.own("CausalMask", {scores});
    const ValueId weights = mask != GR_NO_VALUE
                                ? masked_softmax(scores, mask)
                                : e_.op("Softmax", {scores}, {{"axis", int64_t{-1}}});
    return from_heads(e_.matmul(rows(weights), v_));
  }

 private:
  double scale() const {
    return attrs_.get_float("scale", 1.0 / std::sqrt(static_cast<double>(h_.q[3].number())));
  }

  ValueId to_heads(ValueId x, const Shape& shape) {
    if (!h_.packed) return x;
    const ValueId split = e_.reshape(x, {0, 0, shape[1].number(), shape[3].number()});
    return e_.transpose(split, {0, 2, 1, 3});
  }

  /// [B, H, T, n] or [B, KV, G, T, n] as [B, KV, G*T, n]: the queries of a group under each other.
  ValueId rows(ValueId x) {
    if (groups_ == 1 || e_.rank(x) < 4) return x;
    const bool split = e_.rank(x) == 5;
    if (!split && e_.shape(x)[1] == h_.k[1]) return x;
    const ValueId last = dim_of(e_, x, static_cast<int64_t>(e_.rank(x)) - 1);
    return e_.reshape(x, shape_from(e_, {dim_of(e_, x, 0), e_.ints({h_.k[1].number(), -1}), last}));
  }

  /// Scores with an axis of queries: [B, KV, G, T, S]; [B, H, T, S] when groups are single.
  ValueId per_query(ValueId scores) {
    if (groups_ == 1) return scores;
    return e_.reshape(scores,
                      shape_from(e_, {dim_of(e_, q_, 0), e_.ints({h_.k[1].number(), groups_}),
                                      dim_of(e_, q_, 2), dim_of(e_, k_, 2)}));
  }

  ValueId softcap(ValueId scores) {
    const double cap = attrs_.get_float("softcap");
    return cap == 0 ? scores : e_.mul(e_.op("Tanh", {e_.mul(scores, 1.0 / cap)}), cap);
  }

  /// The mask's head axis split like the scores' when it has one.
  ValueId grouped_mask(ValueId mask) {
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
  ValueId masked_softmax(ValueId scores, ValueId mask) {
    const ValueId grouped = grouped_mask(mask);
    const ValueId nothing = e_.like(scores, kMinusInfinity), zero = e_.like(scores, 0.0);
    scores = e_.type(mask).dtype == GR_BOOL ? e_.where(grouped, scores, nothing)
                                            : e_.add(scores, grouped);
    const ValueId blind = e_.op("Equal", {e_.reduce_max(scores, {-1}, true), nothing});
    const ValueId finite = e_.where(blind, zero, scores);
    const ValueId weights = e_.op("Softmax", {finite}, {{"axis", int64_t{-1}}});
    return e_.where(blind, zero, weights);
  }

  /// [B, KV, G*T, Dv] as the output's layout.
  ValueId from_heads(ValueId y) {
    const int64_t heads = h_.q[1].number(), size = h_.v[3].number();
    if (groups_ != 1) {
      y = e_.reshape(y, shape_from(e_, {dim_of(e_, q_, 0), e_.ints({heads}), dim_of(e_, q_, 2),
                                        e_.ints({size})}));
    }
    return h_.packed ? e_.reshape(e_.transpose(y, {0, 2, 1, 3}), {0, 0, heads * size}) : y;
  }

  Emitter& e_;
  const Attrs& attrs_;
  Heads h_;
  int64_t groups_;
  ValueId q_ = GR_NO_VALUE, k_ = GR_NO_VALUE, v_ = GR_NO_VALUE;
};

void decompose_attention(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId q = c.input(0), k = c.input(1), v = c.input(2);
  const ValueId mask = c.input_count() > 3 ? c.input(3) : ValueId{GR_NO_VALUE};
  auto heads = read_heads(c.attrs(), e.shape(q), e.shape(k), e.shape(v));
  if (!heads.ok()) return e.fail(heads.status());
  AttentionWriter writer(e, c.attrs(), q, k, v, *heads);
  c.set_output(0, writer.write(mask));
}

Status infer_matrices(InferContext& c) {
  if (c.input(0).shape.size() < 2) {
    return invalid_argument("needs at least 2 axes, got " + to_text(c.input(0)));
  }
  c.set_output(0, c.input(0));
  return {};
}

Status add_causal_mask(OpRegistry& ops) {
  OpDef mask =
      define_own("CausalMask", "scores", "output",
                 "scores [..., T, S] with -inf where the column is beyond the row: query t "
                 "sees keys 0 to t.");
  mask.primitive = true;
  mask.infer = [](InferContext& c) -> Status {
    GR_TRY(want_dtype(c, 0, Dtypes::kReal));
    return infer_matrices(c);
  };
  mask.grad = [](GradContext& c) {
    c.set_grad(0, c.e().op("Trilu", {c.grad_output(0)}, {{"upper", int64_t{0}}}));
  };
  GR_TRY(ops.add(mask));

  OpDef trilu = define("Trilu", "input, k?", "output",
                       "input [..., T, S] with zeros below (upper=1) or above (upper=0) "
                       "diagonal k, which is 0 when left out.");
  trilu.attrs = {attr("upper", int64_t{1})};
  trilu.primitive = true;
  trilu.infer = [](InferContext& c) -> Status {
    if (c.has_input(1)) GR_TRY(known_numbers(c, 1, "k").status());
    return infer_matrices(c);
  };
  trilu.grad = [](GradContext& c) {
    const ValueId k = c.input_count() > 1 ? c.input(1) : ValueId{GR_NO_VALUE};
    c.set_grad(0, c.e().op("Trilu", {c.grad_output(0), k}, c.attrs()));
  };
  return ops.add(trilu);
}

}  // namespace

Status add_attention_ops(OpRegistry& ops) {
  GR_TRY(add_causal_mask(ops));
  OpDef attention = define(
      "Attention", "Q, K, V, attn_mask?, past_key?, past_value?",
      "Y, present_key?, present_value?, qk_matmul_output?",
      "softmax(softcap(scale * Q K^T) + mask) V, with Q [B, H, T, D], K and V [B, KV, S, D] (or "
      "3-D "
      "[B, T, H*D] and head counts); KV divides H, and head h reads key head h/(H/KV). is_causal: "
      "query t sees keys 0 to t. attn_mask: bool (true is seen) or added. A query that sees no key "
      "gives zeros. past_*, present_* and qk_matmul_output are not supported.");
  attention.attrs = {attr("is_causal", int64_t{0}),
                     optional_attr("kv_num_heads", GR_ATTR_INT),
                     optional_attr("q_num_heads", GR_ATTR_INT),
                     attr("qk_matmul_output_mode", int64_t{0}),
                     optional_attr("scale", GR_ATTR_FLOAT),
                     attr("softcap", 0.0),
                     optional_attr("softmax_precision", GR_ATTR_INT)};
  attention.infer = infer_attention;
  attention.decompose = decompose_attention;
  return ops.add(attention);
}

}  // namespace gradrack
