// SPDX-License-Identifier: Apache-2.0
// AttentionWriter: the pieces of attention and of its gradients, as nodes.
//
// Used by the entries of Attention and gradrack.AttentionGrad. Query heads of one group lie side by
// side along the rows of one batched product with their key head, so grouped-query attention copies
// no keys. Order as in ONNX since its correction (onnx pull request 7867): scale, softcap, causal
// mask, attn_mask, softmax. Invariant: a query that sees no key at all gives zeros and zero
// gradients (onnx pull request 8068), never NaN.
#pragma once

#include "core/graph/emitter.hpp"

namespace gradrack {

/// Q, K and V as [batch, heads, length, size], whatever the layout they came in.
struct Heads {
  Shape q, k, v;
  bool packed = false;  // the inputs are [batch, length, heads * size]
};

/// Errors name what does not fit: ranks, or head counts of packed inputs.
Result<Heads> read_heads(const Attrs& attrs, const Shape& q, const Shape& k, const Shape& v);

/// Gradients of one Attention; `mask` is GR_NO_VALUE unless it was asked for.
struct AttentionGrads {
  ValueId q = GR_NO_VALUE, k = GR_NO_VALUE, v = GR_NO_VALUE, mask = GR_NO_VALUE;
};

class AttentionWriter {
 public:
  AttentionWriter(Emitter& e, const Attrs& attrs, ValueId q, ValueId k, ValueId v, Heads heads);

  /// The output, in the layout of the inputs.
  ValueId write(ValueId mask);
  /// Of an output gradient in that layout; the weights are taken again. `of_mask`: that of an
  /// added mask too.
  AttentionGrads write_gradients(ValueId gy, ValueId mask, bool of_mask);

 private:
  double scale() const;
  ValueId wide(ValueId x);
  ValueId like_inputs(ValueId x);
  ValueId to_heads(ValueId x, const Shape& shape);
  ValueId rows(ValueId x);
  ValueId per_query(ValueId scores);
  ValueId softcap(ValueId scores);
  ValueId grouped_mask(ValueId mask);
  ValueId masked_softmax(ValueId scores, ValueId mask);
  ValueId weights(ValueId capped, ValueId mask);
  ValueId from_heads(ValueId y, const Shape& shape);
  ValueId mask_gradient(ValueId gs, ValueId mask);

  Emitter& e_;
  const Attrs& attrs_;
  Heads h_;
  int64_t groups_;
  ValueId q_ = GR_NO_VALUE, k_ = GR_NO_VALUE, v_ = GR_NO_VALUE;
};

}  // namespace gradrack
