// SPDX-License-Identifier: Apache-2.0
// Operator entry: RotaryEmbedding.
//
// Each pair of features is turned by the angle of its position. Invariant: a rotation's gradient is
// the rotation back, so the gradient is the same operator with -sin.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

/// [B, H, T, D] of the input, whatever layout it came in.
struct RotaryLayout {
  Dim batch, length;
  int64_t heads = 0, size = 0, rotated = 0;
  bool packed = false;  // the input is [B, T, H*D]
};

Result<RotaryLayout> read_layout(const Attrs& attrs, const Shape& x) {
  RotaryLayout out;
  if (x.size() != 3 && x.size() != 4) {
    return invalid_argument("X must be [B, H, T, D] or [B, T, H*D], got " + to_text(x));
  }
  out.packed = x.size() == 3;
  out.batch = x[0];
  out.length = out.packed ? x[1] : x[2];
  const Dim& heads = out.packed ? Dim(attrs.get_int("num_heads")) : x[1];
  if (!heads.is_number() || !x.back().is_number()) {
    return invalid_argument("heads and sizes must be numbers, got " + to_text(x));
  }
  out.heads = heads.number();
  out.size = x.back().number();
  if (out.packed) {
    if (out.heads < 1 || out.size % out.heads != 0) {
      return invalid_argument("3-D X needs num_heads that divide " + x.back().text() + ", got " +
                              std::to_string(out.heads));
    }
    out.size /= out.heads;
  }
  out.rotated = attrs.get_int("rotary_embedding_dim");
  if (out.rotated == 0) out.rotated = out.size;
  if (out.rotated % 2 != 0 || out.rotated < 2 || out.rotated > out.size) {
    return invalid_argument("the rotated size must be even and at most the head size " +
                            std::to_string(out.size) + ", got " + std::to_string(out.rotated));
  }
  return out;
}

Status check_caches(const InferContext& c, const RotaryLayout& layout) {
  const Type& cache = c.input(1);
  const bool by_position = c.has_input(3);
  if (cache.dtype != c.input(0).dtype) {
    return invalid_argument("cos_cache must have X's dtype, got " + to_text(cache));
  }
  const Dim half(layout.rotated / 2);
  const Shape& s = cache.shape;
  const bool fits = by_position ? s.size() == 2 && s[1] == half
                                : s.size() == 3 && (s[0] == layout.batch || s[0].is_one()) &&
                                      s[1] == layout.length && s[2] == half;
  if (!fits) {
    return invalid_argument(std::string("cos_cache must be ") +
                            (by_position ? "[positions, " : "[B or 1, T, ") + half.text() +
                            "], got " + to_text(s));
  }
  GR_TRY(want_type(c, 2, c.input(1), "sin_cache"));
  if (!by_position) return {};
  return want_type(c, 3, Type{GR_INT64, {layout.batch, layout.length}}, "position_ids");
}

Status infer_rotary(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_ASSIGN(const RotaryLayout layout, read_layout(c.attrs(), c.input(0).shape));
  GR_TRY(check_caches(c, layout));
  c.set_output(0, c.input(0));
  return {};
}

/// The two halves (or the even and the odd) of the rotated features turned and put back.
ValueId rotate(Emitter& e, ValueId x, ValueId cos, ValueId sin, int64_t rotated, bool interleaved) {
  const int64_t last = static_cast<int64_t>(e.rank(x)) - 1, half = rotated / 2;
  const ValueId a =
      interleaved ? slice_axis(e, x, last, 0, rotated, 2) : slice_axis(e, x, last, 0, half);
  const ValueId b =
      interleaved ? slice_axis(e, x, last, 1, rotated, 2) : slice_axis(e, x, last, half, rotated);
  const ValueId turned_a = e.sub(e.mul(a, cos), e.mul(b, sin));
  const ValueId turned_b = e.add(e.mul(a, sin), e.mul(b, cos));
  if (!interleaved) return e.op("Concat", {turned_a, turned_b}, {{"axis", last}});
  const ValueId pairs =
      e.op("Concat", {e.unsqueeze(turned_a, {last + 1}), e.unsqueeze(turned_b, {last + 1})},
           {{"axis", last + 1}});
  return e.reshape(pairs, {0, 0, 0, rotated});
}

void decompose_rotary(DecomposeContext& c) {
  Emitter& e = c.e();
  const ValueId x = c.input(0);
  auto layout = read_layout(c.attrs(), e.shape(x));
  if (!layout.ok()) return e.fail(layout.status());
  // With heads last in [B, T, H, D] the angles need an axis behind T, otherwise before it.
  const std::vector<int64_t> head_axis{layout->packed ? 2 : 1};
  const auto angles = [&](size_t k) {
    ValueId cache = c.input(k);
    if (c.input_count() > 3) cache = e.op("Gather", {cache, c.input(3)}, {{"axis", int64_t{0}}});
    return e.unsqueeze(cache, head_axis);
  };
  const ValueId split = layout->packed ? e.reshape(x, {0, 0, layout->heads, layout->size}) : x;
  ValueId y = rotate(e, split, angles(1), angles(2), layout->rotated,
                     c.attrs().get_int("interleaved") != 0);
  if (layout->rotated < layout->size) {
    const ValueId rest = slice_axis(e, split, 3, layout->rotated, layout->size);
    y = e.op("Concat", {y, rest}, {{"axis", int64_t{3}}});
  }
  c.set_output(0, layout->packed ? e.reshape_like(y, x) : y);
}

void grad_rotary(GradContext& c) {
  Emitter& e = c.e();
  if (c.needs(1) || c.needs(2)) {
    e.fail(
        unsupported("cos_cache and sin_cache have no gradient: write a trained rotation with "
                    "Mul, Sub and Concat"));
    return;
  }
  const ValueId positions = c.input_count() > 3 ? c.input(3) : ValueId{GR_NO_VALUE};
  c.set_grad(0, e.op("RotaryEmbedding",
                     {c.grad_output(0), c.input(1), e.neg(c.input(2)), positions}, c.attrs()));
}

}  // namespace

Status add_rotary_ops(OpRegistry& ops) {
  OpDef rotary = define(
      "RotaryEmbedding", "X, cos_cache, sin_cache, position_ids?", "Y",
      "Pairs (a, b) of features become (a cos - b sin, a sin + b cos). X [B, H, T, D], or [B, T, "
      "H*D] "
      "with num_heads. Caches [positions, D/2] with position_ids [B, T], else [B or 1, T, D/2] (1 "
      "is "
      "an addition to ONNX). Pairs are (i, i + D/2), or neighbours when interleaved; features past "
      "rotary_embedding_dim stay. The caches have no gradient.");
  rotary.attrs = {attr("interleaved", int64_t{0}), attr("num_heads", int64_t{0}),
                  attr("rotary_embedding_dim", int64_t{0})};
  rotary.infer = infer_rotary;
  rotary.grad = grad_rotary;
  rotary.decompose = decompose_rotary;
  return ops.add(rotary);
}

}  // namespace gradrack
