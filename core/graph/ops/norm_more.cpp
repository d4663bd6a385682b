// SPDX-License-Identifier: Apache-2.0
// Operator entries: InstanceNormalization, LRN, LpNormalization, MeanVarianceNormalization and the
// pools over everything or by a norm: GlobalMaxPool, GlobalLpPool, LpPool. All by decomposition.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"

namespace gradrack {

namespace {

OpDef instance_norm_op() {
  OpDef op = define("InstanceNormalization", "input, scale, B", "output",
                    "X [N, C, ...] normalised over each channel of each element of the batch, "
                    "times scale [C] plus B [C].");
  op.attrs = {attr("epsilon", 1e-5)};
  op.infer = [](InferContext& c) -> Status {
    const Shape& shape = c.input(0).shape;
    if (shape.size() < 3 || !shape[1].is_number()) {
      return invalid_argument("needs X [N, C, spatial] with a number of channels, got " +
                              to_text(shape));
    }
    const Type per_channel{c.input(0).dtype, {shape[1]}};
    GR_TRY(want_type(c, 1, per_channel, "scale"));
    GR_TRY(want_type(c, 2, per_channel, "B"));
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = [](DecomposeContext& d) {
    const int64_t channels = d.e().shape(d.input(0))[1].number();
    d.set_output(0,
                 d.e().op("GroupNormalization", {d.input(0), d.input(1), d.input(2)},
                          {{"epsilon", d.attrs().get_float("epsilon")}, {"num_groups", channels}}));
  };
  return op;
}

/// The mean of squares over `size` channels around each, as a pool over [N, 1, C, spatial].
void lrn(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId x = d.input(0);
  const int64_t size = d.attrs().get_int("size");
  const ValueId square = e.mul(x, x);
  const ValueId plane = e.reshape(square, {0, 0, -1});
  const ValueId mean = e.op("AveragePool", {e.unsqueeze(plane, {1})},
                            {{"count_include_pad", int64_t{1}},
                             {"kernel_shape", std::vector<int64_t>{size, 1}},
                             {"pads", std::vector<int64_t>{(size - 1) / 2, 0, size / 2, 0}}});
  const ValueId near = e.reshape_like(e.squeeze(mean, {1}), x);
  const ValueId base =
      e.add(e.mul(near, d.attrs().get_float("alpha")), d.attrs().get_float("bias"));
  d.set_output(0, e.div(x, e.op("Pow", {base, e.like(x, d.attrs().get_float("beta"))})));
}

OpDef lrn_op() {
  OpDef op = define("LRN", "X", "Y",
                    "X / (bias + alpha * m)^beta with m the sum of squares of the `size` channels "
                    "around each, divided by size.");
  op.attrs = {attr("alpha", 1e-4), attr("beta", 0.75), attr("bias", 1.0),
              required_attr("size", GR_ATTR_INT)};
  op.infer = [](InferContext& c) -> Status {
    if (c.input(0).shape.size() < 3) return invalid_argument("needs X [N, C, spatial]");
    if (c.attrs().get_int("size") < 1) return invalid_argument("size must be at least 1");
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = lrn;
  return op;
}

OpDef lp_norm_op() {
  OpDef op = define("LpNormalization", "input", "output",
                    "X by its length along one axis: the sum of |x| for p = 1, the root of the sum "
                    "of squares for p = 2; 0 where the length is 0.");
  op.attrs = {attr("axis", int64_t{-1}), attr("p", int64_t{2})};
  op.infer = [](InferContext& c) -> Status {
    const int64_t p = c.attrs().get_int("p");
    if (p != 1 && p != 2) return invalid_argument("p must be 1 or 2, got " + std::to_string(p));
    GR_TRY(normalize_axis(c.attrs().get_int("axis"), c.input(0).shape.size()).status());
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const char* norm = d.attrs().get_int("p") == 1 ? "ReduceL1" : "ReduceL2";
    const ValueId length = e.op(norm, {d.input(0), e.ints({d.attrs().get_int("axis")})});
    const ValueId none = e.op("Equal", {length, e.like(length, 0.0)});
    d.set_output(0, e.div(d.input(0), e.where(none, e.like(length, 1.0), length)));
  };
  return op;
}

OpDef mean_variance_op() {
  OpDef op = define("MeanVarianceNormalization", "X", "Y",
                    "(X - mean) / (deviation + 1e-9) over `axes`, in float64.");
  op.attrs = {attr("axes", std::vector<int64_t>{0, 2, 3})};
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(normalize_axes(c.attrs().get_ints("axes"), c.input(0).shape.size()).status());
    return infer_like_first(c, Dtypes::kReal);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const std::vector<int64_t> axes = d.attrs().get_ints("axes");
    const ValueId wide = e.cast(d.input(0), GR_FLOAT64);
    const ValueId centered = e.sub(wide, e.reduce_mean(wide, axes, true));
    const ValueId variance = e.reduce_mean(e.mul(centered, centered), axes, true);
    const ValueId y = e.div(centered, e.add(e.op("Sqrt", {variance}), 1e-9));
    d.set_output(0, e.cast(y, e.type(d.input(0)).dtype));
  };
  return op;
}

/// |x|^p
ValueId powered(Emitter& e, ValueId x, int64_t p) {
  const ValueId size = e.op("Abs", {x});
  return p == 1 ? size : e.op("Pow", {size, e.like(x, static_cast<double>(p))});
}

ValueId rooted(Emitter& e, ValueId x, int64_t p) {
  return p == 1 ? x : e.op("Pow", {x, e.like(x, 1.0 / static_cast<double>(p))});
}

Status check_p(const Attrs& attrs) {
  if (attrs.get_int("p") >= 1) return {};
  return invalid_argument("p must be at least 1, got " + std::to_string(attrs.get_int("p")));
}

OpDef global_max_op() {
  OpDef op = define("GlobalMaxPool", "X", "Y",
                    "Maximum over all spatial axes of X [N, C, spatial], kept as ones.");
  op.infer = infer_global_pool;
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    d.set_output(0, e.reduce_max(d.input(0), axis_range(2, e.rank(d.input(0))), true));
  };
  return op;
}

OpDef global_lp_op() {
  OpDef op = define("GlobalLpPool", "X", "Y",
                    "The p-norm over all spatial axes of X [N, C, spatial], kept as ones.");
  op.attrs = {attr("p", int64_t{2})};
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(check_p(c.attrs()));
    return infer_global_pool(c);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const int64_t p = d.attrs().get_int("p");
    const auto axes = axis_range(2, e.rank(d.input(0)));
    d.set_output(0, rooted(e, e.reduce_sum(powered(e, d.input(0), p), axes, true), p));
  };
  return op;
}

/// Sums over windows are a Conv of each channel with ones.
ValueId window_sums(Emitter& e, const Attrs& attrs, ValueId x) {
  const int64_t channels = e.shape(x)[1].number();
  std::vector<int64_t> shape{channels, 1};
  for (const int64_t size : attrs.get_ints("kernel_shape")) shape.push_back(size);
  const ValueId ones = e.op("Expand", {e.like(x, 1.0), e.ints(shape)});
  Attrs conv{{"group", channels}};
  for (const char* name : {"auto_pad", "dilations", "kernel_shape", "pads", "strides"}) {
    if (const AttrValue* value = attrs.find(name)) conv.set(name, *value);
  }
  return e.op("Conv", {x, ones}, conv);
}

OpDef lp_pool_op(const OpRegistry& ops) {
  OpDef op = define("LpPool", "X", "Y",
                    "The p-norm over windows of X [N, C, spatial]; padding counts as zeros. "
                    "ceil_mode is not supported.");
  const OpDef* average = ops.find("", "AveragePool");
  op.attrs = average->attrs;
  std::erase_if(op.attrs, [](const AttrDef& a) { return a.name == "count_include_pad"; });
  op.attrs.push_back(attr("p", int64_t{2}));
  op.infer = [average](InferContext& c) -> Status {
    GR_TRY(check_p(c.attrs()));
    if (c.attrs().get_int("ceil_mode") != 0) return unsupported("ceil_mode is not supported");
    if (c.input(0).shape.size() < 2 || !c.input(0).shape[1].is_number()) {
      return invalid_argument("needs X [N, C, spatial] with a number of channels");
    }
    return average->infer(c);
  };
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const int64_t p = d.attrs().get_int("p");
    const ValueId sums = window_sums(e, d.attrs(), powered(e, d.input(0), p));
    d.set_output(0, rooted(e, sums, p));
  };
  return op;
}

}  // namespace

Status add_more_norm_ops(OpRegistry& ops) {
  GR_TRY(ops.add(instance_norm_op()));
  GR_TRY(ops.add(lrn_op()));
  GR_TRY(ops.add(lp_norm_op()));
  GR_TRY(ops.add(mean_variance_op()));
  GR_TRY(ops.add(global_max_op()));
  GR_TRY(ops.add(global_lp_op()));
  return ops.add(lp_pool_op(ops));
}

}  // namespace gradrack
