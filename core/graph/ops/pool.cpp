// SPDX-License-Identifier: Apache-2.0
// Operator entries: MaxPool, AveragePool, GlobalAveragePool and the gradients of the first two.
//
// Invariant: padding is never a maximum; the first maximum of a window in row-major order takes the
// whole gradient. MaxPool's Indices output is not there: nothing in training needs it.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/nn_rules.hpp"
#include "core/graph/ops/window.hpp"

namespace gradrack {

namespace {

/// Shape of the pooled output of x [N, C, spatial].
Result<Shape> pool_output(const Attrs& attrs, const Shape& x) {
  if (x.size() < 3) return invalid_argument("needs X [N, C, spatial], got " + to_text(x));
  const auto kernel = attrs.get_ints("kernel_shape");
  if (kernel.size() != x.size() - 2) {
    return invalid_argument("kernel_shape needs " + std::to_string(x.size() - 2) +
                            " numbers, got " + std::to_string(kernel.size()));
  }
  GR_ASSIGN(const Window window, read_window(attrs, kernel));
  for (size_t k = 0; k < kernel.size(); ++k) {
    const int64_t extent = window.dilations[k] * (kernel[k] - 1) + 1;
    if (window.pads_begin[k] >= extent || window.pads_end[k] >= extent) {
      return invalid_argument(
          "pads must be smaller than the window, or a window holds padding alone");
    }
  }
  GR_ASSIGN(const Shape spatial, window_outputs(window, Shape(x.begin() + 2, x.end())));
  Shape out{x[0], x[1]};
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

Status infer_pool(InferContext& c) {
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  if (c.output_count() > 1) {
    return unsupported("MaxPool gives Y alone: ask for one output (Indices is not supported)");
  }
  if (c.attrs().get_int("storage_order", 0) != 0) {
    return unsupported("storage_order must be 0 (row-major)");
  }
  GR_ASSIGN(Shape out, pool_output(c.attrs(), c.input(0).shape));
  c.set_output(0, Type{c.input(0).dtype, std::move(out)});
  return {};
}

Status infer_max_pool_grad(InferContext& c) {  // gy, x
  GR_TRY(want_dtype(c, 1, Dtypes::kReal));
  GR_ASSIGN(Shape y, pool_output(c.attrs(), c.input(1).shape));
  GR_TRY(want_type(c, 0, Type{c.input(1).dtype, std::move(y)}, "gy"));
  c.set_output(0, c.input(1));
  return {};
}

Status infer_average_pool_grad(InferContext& c) {  // gy, shape
  GR_TRY(want_dtype(c, 0, Dtypes::kReal));
  GR_ASSIGN(KnownInts shape, known_ints(c, 1, "shape"));
  GR_ASSIGN(Shape y, pool_output(c.attrs(), shape));
  GR_TRY(want_type(c, 0, Type{c.input(0).dtype, std::move(y)}, "gy"));
  c.set_output(0, Type{c.input(0).dtype, std::move(shape)});
  return {};
}

/// The forward node's attributes without the one its gradient has no use for.
Attrs without_storage_order(const Attrs& attrs) {
  Attrs out;
  for (const auto& [name, value] : attrs.items()) {
    if (name != "storage_order") out.set(name, value);
  }
  return out;
}

std::vector<AttrDef> pool_attrs() {
  std::vector<AttrDef> attrs = window_attrs();
  attrs.push_back(attr("ceil_mode", int64_t{0}));
  attrs.push_back(required_attr("kernel_shape", GR_ATTR_INTS));
  return attrs;
}

Status add_max_pool(OpRegistry& ops) {
  OpDef pool = define("MaxPool", "X", "Y, Indices?",
                      "Maximum over windows of X [N, C, spatial]; padding is left out. Output "
                      "Indices is not supported.");
  pool.attrs = pool_attrs();
  pool.attrs.push_back(attr("storage_order", int64_t{0}));
  pool.primitive = true;
  pool.infer = infer_pool;
  pool.grad = [](GradContext& c) {
    c.set_grad(0, c.e().own("MaxPoolGrad", {c.grad_output(0), c.input(0)},
                            without_storage_order(c.attrs())));
  };
  GR_TRY(ops.add(pool));

  OpDef grad = define_own("MaxPoolGrad", "gy, x", "gx",
                          "Of MaxPool: gy goes to the first maximum of its window, in row-major "
                          "order.");
  grad.attrs = pool_attrs();
  grad.primitive = true;
  grad.infer = infer_max_pool_grad;
  return ops.add(grad);
}

Status add_average_pool(OpRegistry& ops) {
  OpDef pool = define("AveragePool", "X", "Y",
                      "Mean over windows of X [N, C, spatial]; count_include_pad=1 counts the "
                      "padding as zeros, otherwise it is left out.");
  pool.attrs = pool_attrs();
  pool.attrs.push_back(attr("count_include_pad", int64_t{0}));
  pool.primitive = true;
  pool.infer = infer_pool;
  pool.grad = [](GradContext& c) {
    Emitter& e = c.e();
    c.set_grad(0, e.own("AveragePoolGrad", {c.grad_output(0), e.shape_of(c.input(0))}, c.attrs()));
  };
  const std::vector<AttrDef> attrs = pool.attrs;
  GR_TRY(ops.add(pool));

  OpDef grad = define_own("AveragePoolGrad", "gy, shape", "gx",
                          "Of AveragePool to X, whose shape is the input `shape`: gy / count for "
                          "each element of its window.");
  grad.attrs = attrs;
  grad.primitive = true;
  grad.infer = infer_average_pool_grad;
  grad.grad = [](GradContext& c) {  // linear in gy, and the adjoint of AveragePool
    if (c.needs(0)) c.set_grad(0, c.e().op("AveragePool", {c.grad_output(0)}, c.attrs()));
  };
  return ops.add(grad);
}

}  // namespace

Status add_pool_ops(OpRegistry& ops) {
  GR_TRY(add_max_pool(ops));
  GR_TRY(add_average_pool(ops));
  OpDef global = define("GlobalAveragePool", "X", "Y",
                        "Mean over all spatial axes of X [N, C, spatial], kept as ones.");
  global.infer = infer_global_pool;
  global.decompose = [](DecomposeContext& c) {
    Emitter& e = c.e();
    c.set_output(0, e.reduce_mean(c.input(0), axis_range(2, e.rank(c.input(0))), true));
  };
  return ops.add(global);
}

}  // namespace gradrack
