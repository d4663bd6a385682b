// SPDX-License-Identifier: Apache-2.0
// Operator entries for matrix products: the primitive gradrack.FusedMatMul, and MatMul and Gemm,
// which decompose to it.
//
// Gradients of the two factors are separate nodes, so that a scheduler can move the weight's. When
// the second factor is a plain matrix, leading dims of the first are folded into rows: forward and
// both gradients are then one 2-D product each, and no sum over the batch is left to do.
#include "core/graph/ops/families.hpp"
#include "core/graph/ops/rules.hpp"

namespace gradrack {

namespace {

/// Type rule of alpha * op(a) @ op(b) for ranks of at least 2.
Result<Shape> product_shape(const Shape& a, const Shape& b, bool trans_a, bool trans_b) {
  if (a.size() < 2 || b.size() < 2) {
    return invalid_argument("both factors need rank 2 or more");
  }
  const size_t ra = a.size(), rb = b.size();
  const Dim rows = a[ra - (trans_a ? 1 : 2)], inner = a[ra - (trans_a ? 2 : 1)];
  const Dim inner_b = b[rb - (trans_b ? 1 : 2)], columns = b[rb - (trans_b ? 2 : 1)];
  if (!(inner == inner_b)) {
    return invalid_argument("inner dimensions differ: " + inner.text() + " against " +
                            inner_b.text());
  }
  GR_ASSIGN(Shape shape,
            broadcast_shapes(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2)));
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

/// Gradient of the first factor before it is summed over broadcast dims.
ValueId grad_of_a(Emitter& e, ValueId gy, ValueId b, bool trans_a, bool trans_b, double alpha) {
  return trans_a ? e.matmul(b, gy, trans_b, true, alpha) : e.matmul(gy, b, false, !trans_b, alpha);
}

ValueId grad_of_b(Emitter& e, ValueId gy, ValueId a, bool trans_a, bool trans_b, double alpha) {
  return trans_b ? e.matmul(gy, a, true, trans_a, alpha) : e.matmul(a, gy, !trans_a, false, alpha);
}

void fused_grad(GradContext& g) {
  Emitter& e = g.e();
  const bool ta = g.attrs().get_int("transA") != 0, tb = g.attrs().get_int("transB") != 0;
  const double alpha = g.attrs().get_float("alpha");
  const ValueId gy = g.grad_output(0), a = g.input(0), b = g.input(1);
  if (g.needs(0)) g.set_grad(0, e.sum_to(grad_of_a(e, gy, b, ta, tb, alpha), a));
  if (g.needs(1)) g.set_grad(1, e.sum_to(grad_of_b(e, gy, a, ta, tb, alpha), b));
}

std::vector<AttrDef> product_attrs() {
  return {attr("alpha", 1.0), attr("transA", int64_t{0}), attr("transB", int64_t{0})};
}

OpDef fused_matmul_op() {
  OpDef op = define_own("FusedMatMul", "A, B", "Y",
                        "Y = alpha op(A) op(B), where op swaps the last two dims if transA or "
                        "transB is 1; leading dims broadcast. Ranks of at least 2.");
  op.attrs = product_attrs();
  op.primitive = true;
  op.infer = [](InferContext& c) -> Status {
    GR_TRY(want_same_dtype(c, Dtypes::kReal));
    GR_ASSIGN(Shape shape,
              product_shape(c.input(0).shape, c.input(1).shape, c.attrs().get_int("transA") != 0,
                            c.attrs().get_int("transB") != 0));
    c.set_output(0, {c.input(0).dtype, std::move(shape)});
    return {};
  };
  op.grad = fused_grad;
  return op;
}

/// Leading dims folded into one: [..., K] to [N, K].
ValueId fold(Emitter& e, ValueId x) {
  const auto last = static_cast<int64_t>(e.rank(x)) - 1;
  return e.op("Flatten", {x}, {{"axis", last}});
}

/// Back from [N, columns] to the leading dims of `x`.
ValueId unfold(Emitter& e, ValueId y, ValueId x) {
  const auto last = static_cast<int64_t>(e.rank(x)) - 1;
  const ValueId lead = e.op("Shape", {x}, {{"end", last}});
  const ValueId shape = e.op("Concat", {lead, dim_of(e, y, 1)}, {{"axis", int64_t{0}}});
  return e.op("Reshape", {y, shape}, {{"allowzero", int64_t{1}}});
}

bool folds(Emitter& e, ValueId a, ValueId b) { return e.rank(b) == 2 && e.rank(a) > 2; }

Status matmul_infer(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kReal));
  Shape a = c.input(0).shape, b = c.input(1).shape;
  if (a.empty() || b.empty()) return invalid_argument("a scalar is no factor: use Mul");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  GR_ASSIGN(Shape shape, product_shape(a, b, false, false));
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

/// Factors of MatMul with a vector made a matrix: [K] to [1, K] on the left, [K, 1] on the right.
ValueId left_matrix(Emitter& e, ValueId a) { return e.rank(a) == 1 ? e.unsqueeze(a, {0}) : a; }
ValueId right_matrix(Emitter& e, ValueId b) { return e.rank(b) == 1 ? e.unsqueeze(b, {1}) : b; }

void matmul_decompose(DecomposeContext& d) {
  Emitter& e = d.e();
  const ValueId a = left_matrix(e, d.input(0)), b = right_matrix(e, d.input(1));
  ValueId y = folds(e, a, b) ? unfold(e, e.matmul(fold(e, a), b), a) : e.matmul(a, b);
  std::vector<int64_t> drop;
  if (e.rank(d.input(0)) == 1) drop.push_back(-2);
  if (e.rank(d.input(1)) == 1) drop.push_back(-1);
  d.set_output(0, e.squeeze(y, drop));
}

void matmul_grad(GradContext& g) {
  Emitter& e = g.e();
  ValueId a = left_matrix(e, g.input(0)), b = right_matrix(e, g.input(1));
  ValueId gy = g.grad_output(0);
  // From the right, so that each axis is where it was before it was dropped.
  if (e.rank(g.input(1)) == 1) gy = e.unsqueeze(gy, {-1});
  if (e.rank(g.input(0)) == 1) gy = e.unsqueeze(gy, {-2});
  const ValueId whole = a;
  const bool folded = folds(e, a, b);
  if (folded) {
    a = fold(e, a);
    gy = fold(e, gy);
  }
  if (g.needs(0)) {
    ValueId ga = e.sum_to(grad_of_a(e, gy, b, false, false, 1.0), a);
    if (folded) ga = unfold(e, ga, whole);
    g.set_grad(0, e.rank(g.input(0)) == 1 ? e.squeeze(ga, {0}) : ga);
  }
  if (g.needs(1)) {
    const ValueId gb = e.sum_to(grad_of_b(e, gy, a, false, false, 1.0), b);
    g.set_grad(1, e.rank(g.input(1)) == 1 ? e.squeeze(gb, {1}) : gb);
  }
}

OpDef matmul_op() {
  OpDef op = define("MatMul", "A, B", "Y",
                    "Y = A B with numpy's rules: leading dims broadcast, a vector counts as a row "
                    "on the left and as a column on the right, and that dim is dropped again.");
  op.infer = matmul_infer;
  op.decompose = matmul_decompose;
  op.grad = matmul_grad;
  return op;
}

Status gemm_infer(InferContext& c) {
  GR_TRY(want_same_dtype(c, Dtypes::kReal));
  GR_TRY(want_rank(c, 0, 2));
  GR_TRY(want_rank(c, 1, 2));
  GR_ASSIGN(Shape shape,
            product_shape(c.input(0).shape, c.input(1).shape, c.attrs().get_int("transA") != 0,
                          c.attrs().get_int("transB") != 0));
  if (c.has_input(2)) GR_TRY(check_broadcasts_to(c.input(2).shape, shape, "C"));
  c.set_output(0, {c.input(0).dtype, std::move(shape)});
  return {};
}

OpDef gemm_op() {
  OpDef op = define("Gemm", "A, B, C?", "Y",
                    "Y = alpha op(A) op(B) + beta C for matrices; C broadcasts to Y, never the "
                    "other way round.");
  op.attrs = product_attrs();
  op.attrs.push_back(attr("beta", 1.0));
  op.infer = gemm_infer;
  op.decompose = [](DecomposeContext& d) {
    Emitter& e = d.e();
    const double beta = d.attrs().get_float("beta");
    ValueId y = e.matmul(d.input(0), d.input(1), d.attrs().get_int("transA") != 0,
                         d.attrs().get_int("transB") != 0, d.attrs().get_float("alpha"));
    if (d.input_count() > 2) {
      y = e.add(y, beta == 1.0 ? d.input(2) : e.mul(d.input(2), beta));
    }
    d.set_output(0, y);
  };
  op.grad = [](GradContext& g) {
    fused_grad(g);
    if (g.input_count() < 3 || !g.needs(2)) return;
    const double beta = g.attrs().get_float("beta");
    const ValueId sum = g.e().sum_to(g.grad_output(0), g.input(2));
    g.set_grad(2, beta == 1.0 ? sum : g.e().mul(sum, beta));
  };
  return op;
}

}  // namespace

Status add_matmul_ops(OpRegistry& ops) {
  GR_TRY(ops.add(fused_matmul_op()));
  GR_TRY(ops.add(matmul_op()));
  return ops.add(gemm_op());
}

}  // namespace gradrack
