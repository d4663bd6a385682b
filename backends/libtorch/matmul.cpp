// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul: Y = alpha op(A) op(B), by one matrix product where the batch dims fold
// into rows, by a batched one where they are equal, else by one product a matrix.
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>

#include "backends/common/tensor_access.hpp"
#include "backends/libtorch/aten_kernel.hpp"
#include "backends/libtorch/kernels.hpp"

namespace gradrack::libtorch {
namespace {

/// beta 0: what y held is not read.
void multiply(at::Tensor& y, const at::Tensor& a, const at::Tensor& b, double alpha) {
  if (alpha == 1.0) {
    at::mm_out(y, a, b);
  } else {
    at::addmm_out(y, y, a, b, 0, alpha);
  }
}

void multiply_batch(at::Tensor& y, const at::Tensor& a, const at::Tensor& b, double alpha) {
  if (alpha == 1.0) {
    at::bmm_out(y, a, b);
  } else {
    at::baddbmm_out(y, y, a, b, 0, alpha);
  }
}

struct Product {
  at::Tensor a, b, y;
};

/// [..., rows, columns] as one matrix of all rows.
at::Tensor folded(const at::Tensor& x) { return x.view({-1, x.size(-1)}); }
/// [..., rows, columns] as one list of matrices.
at::Tensor listed(const at::Tensor& x) { return x.view({-1, x.size(-2), x.size(-1)}); }
at::Tensor turned(const at::Tensor& x, bool transposed) {
  return transposed ? x.transpose(-2, -1) : x;
}

/// One product for each matrix of y, factors broadcast.
std::vector<Product> single_products(const at::Tensor& a, const at::Tensor& b,
                                     const at::Tensor& y) {
  Dims batch(y.sizes().begin(), y.sizes().end() - 2);
  const auto strides = [&batch](const at::Tensor& x) {
    return host::broadcast_strides(Dims(x.sizes().begin(), x.sizes().end() - 2), batch);
  };
  const Dims as = strides(a), bs = strides(b);
  // Matrices are numbered in the factor's own order, which its batch strides give.
  const at::Tensor a_list = a.reshape({-1, a.size(-2), a.size(-1)});
  const at::Tensor b_list = b.reshape({-1, b.size(-2), b.size(-1)});
  const at::Tensor y_list = listed(y);
  std::vector<Product> products;
  int64_t at_matrix = 0;
  for (host::Walk walk(batch, {as, bs}); walk.more(); walk.next()) {
    products.push_back(
        {a_list.select(0, walk.offset(0)), b_list.select(0, walk.offset(1)), y_list[at_matrix++]});
  }
  return products;
}

Body build_fused_matmul(const NodeSpec& node, Frame& f) {
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  const double alpha = node.get_float("alpha", 1.0);
  at::Tensor a = f.in(0), b = f.in(1), y = f.out(0);
  if (y.numel() == 0) return [](const Call&) {};
  if (a.dim() == 2 && b.dim() == 2) {
    return [a = turned(a, ta), b = turned(b, tb), y, alpha](const Call&) mutable {
      multiply(y, a, b, alpha);
    };
  }
  if (b.dim() == 2 && !ta && a.numel() > 0) {
    return [a = folded(a), b = turned(b, tb), y = folded(y), alpha](const Call&) mutable {
      multiply(y, a, b, alpha);
    };
  }
  const Dims &ad = node.inputs[0].dims, &bd = node.inputs[1].dims;
  if (Dims(ad.begin(), ad.end() - 2) == Dims(bd.begin(), bd.end() - 2) && a.numel() > 0) {
    return [a = turned(listed(a), ta), b = turned(listed(b), tb), y = listed(y),
            alpha](const Call&) mutable { multiply_batch(y, a, b, alpha); };
  }
  if (a.numel() == 0) return [y](const Call&) mutable { y.zero_(); };
  std::vector<Product> products = single_products(a, b, y);
  for (Product& p : products) {
    p.a = turned(p.a, ta);
    p.b = turned(p.b, tb);
  }
  return [products, alpha](const Call&) mutable {
    for (Product& p : products) multiply(p.y, p.a, p.b, alpha);
  };
}

}  // namespace

void add_matmul_kernels(host::KernelTable& table) {
  add(table, "gradrack.FusedMatMul", claim_reals, build_fused_matmul);
}

}  // namespace gradrack::libtorch
