// SPDX-License-Identifier: Apache-2.0
// Operator entries: Attention and its gradient, and what they need of their own:
// gradrack.CausalMask and Trilu. The nodes that they are made of are in attention_parts.cpp.
#include "core/graph/ops/attention_parts.hpp"
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

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
Status check_mask(const Type& q, const Type& mask, const Heads& h) {
  const Shape full{h.q[0], h.q[1], h.q[2], h.k[2]};
  if (mask.dtype != GR_BOOL && mask.dtype != q.dtype) {
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

/// Inputs `first` (Q), then K, V and perhaps attn_mask; their attributes.
Result<Heads> infer_heads(const InferContext& c, size_t first) {
  const Type &q = c.input(first), &k = c.input(first + 1), &v = c.input(first + 2);
  GR_TRY(want_dtype(c, first, Dtypes::kReal));
  GR_TRY(want_type(c, first + 1, Type{q.dtype, k.shape}, "K"));
  GR_TRY(want_type(c, first + 2, Type{q.dtype, v.shape}, "V"));
  GR_ASSIGN(const Heads h, read_heads(c.attrs(), q.shape, k.shape, v.shape));
  GR_TRY(check_heads(h));
  if (c.has_input(first + 3)) GR_TRY(check_mask(q, c.input(first + 3), h));
  if (c.attrs().get_float("softcap") < 0) return invalid_argument("softcap must not be negative");
  return h;
}

Type output_type(const Type& q, const Heads& h) {
  Shape y{h.q[0], h.q[1], h.q[2], h.v[3]};
  if (h.packed) y = {h.q[0], h.q[2], h.q[1] * h.v[3]};
  return {q.dtype, std::move(y)};
}

Status infer_attention(InferContext& c) {
  GR_TRY(check_unsupported(c));
  GR_ASSIGN(const Heads h, infer_heads(c, 0));
  c.set_output(0, output_type(c.input(0), h));
  return {};
}

Status infer_attention_grad(InferContext& c) {
  GR_ASSIGN(const Heads h, infer_heads(c, 1));
  GR_TRY(want_type(c, 0, output_type(c.input(1), h), "gy"));
  for (size_t k = 0; k < 3; ++k) c.set_output(k, c.input(k + 1));
  return {};
}

ValueId mask_of(const DecomposeContext& c, size_t k) {
  return c.input_count() > k ? c.input(k) : ValueId{GR_NO_VALUE};
}

void decompose_attention(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId q = c.input(0), k = c.input(1), v = c.input(2);
  auto heads = read_heads(c.attrs(), e.shape(q), e.shape(k), e.shape(v));
  if (!heads.ok()) return e.fail(heads.status());
  AttentionWriter writer(e, c.attrs(), q, k, v, *heads);
  c.set_output(0, writer.write(mask_of(c, 3)));
}

// A trained mask is rare: its gradient is as large as the scores, so that all is written out.
void grad_attention(GradContext& c) {
  Emitter& e = c.e();
  const ValueId q = c.input(0), k = c.input(1), v = c.input(2);
  const ValueId mask = c.input_count() > 3 ? c.input(3) : ValueId{GR_NO_VALUE};
  const ValueId gy = c.grad_output(0);
  if (mask != GR_NO_VALUE && c.needs(3)) {
    auto heads = read_heads(c.attrs(), e.shape(q), e.shape(k), e.shape(v));
    if (!heads.ok()) return e.fail(heads.status());
    AttentionWriter writer(e, c.attrs(), q, k, v, *heads);
    const AttentionGrads grads = writer.write_gradients(gy, mask, true);
    const ValueId all[] = {grads.q, grads.k, grads.v, grads.mask};
    for (size_t i = 0; i < 4; ++i) {
      if (c.needs(i)) c.set_grad(i, all[i]);
    }
    return;
  }
  std::vector<ValueId> inputs{gy, q, k, v};
  if (mask != GR_NO_VALUE) inputs.push_back(mask);
  const std::vector<ValueId> grads = e.multi("gradrack", "AttentionGrad", inputs, c.attrs(), 3);
  for (size_t i = 0; i < 3; ++i) {
    if (c.needs(i)) c.set_grad(i, grads[i]);
  }
}

void decompose_attention_grad(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId q = c.input(1), k = c.input(2), v = c.input(3);
  auto heads = read_heads(c.attrs(), e.shape(q), e.shape(k), e.shape(v));
  if (!heads.ok()) return e.fail(heads.status());
  AttentionWriter writer(e, c.attrs(), q, k, v, *heads);
  const AttentionGrads grads = writer.write_gradients(c.input(0), mask_of(c, 4), false);
  c.set_output(0, grads.q);
  c.set_output(1, grads.k);
  c.set_output(2, grads.v);
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
  attention.grad = grad_attention;
  attention.decompose = decompose_attention;
  GR_TRY(ops.add(attention));

  OpDef grad = define_own("AttentionGrad", "gy, Q, K, V, attn_mask?", "gQ, gK, gV",
                          "Of Attention: with P its weights, dP = gy V^T and dS = P (dP - sum(dP "
                          "P)): gQ = scale dS K, gK = scale dS^T Q, gV = P^T gy. P is taken again "
                          "from Q and K, so that nothing of the size of the scores is kept.");
  grad.attrs = attention.attrs;
  grad.infer = infer_attention_grad;
  grad.decompose = decompose_attention_grad;
  return ops.add(grad);
}

}  // namespace gradrack
