// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul: Y = alpha op(A) op(B), batched with broadcasting; three plain loops, each
// sum in double from k = 0 up. MatMul and Gemm reach it by their decompositions.
#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

/// One matrix of a factor: element (i, j) is at i * row + j * column.
struct Layout {
  int64_t row, column;
};

struct Product {
  int64_t rows, inner, columns;
  Layout a, b;
  double alpha;
};

/// The last two dims; `transposed` swaps what a row is.
Layout layout_of(const Dims& dims, bool transposed) {
  const int64_t width = dims.back();
  return transposed ? Layout{1, width} : Layout{width, 1};
}

template <class T>
void multiply(const Product& p, const T* a, const T* b, T* y) {
  for (int64_t i = 0; i < p.rows; ++i) {
    for (int64_t j = 0; j < p.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.inner; ++k) {
        sum += static_cast<double>(a[i * p.a.row + k * p.a.column]) *
               static_cast<double>(b[k * p.b.row + j * p.b.column]);
      }
      y[i * p.columns + j] = static_cast<T>(p.alpha * sum);
    }
  }
}

/// Strides, over the batch dims of the output, of a factor's matrices.
Dims batch_strides(const Dims& dims, const Dims& batch) {
  const int64_t matrix = dims[dims.size() - 2] * dims[dims.size() - 1];
  Dims strides = host::broadcast_strides(Dims(dims.begin(), dims.end() - 2), batch);
  for (int64_t& stride : strides) stride *= matrix;
  return strides;
}

std::unique_ptr<Kernel> make_fused_matmul(const NodeSpec& node) {
  const Dims &a = node.inputs[0].dims, &b = node.inputs[1].dims, &y = node.outputs[0].dims;
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  const Product p{y[y.size() - 2],  ta ? a[a.size() - 2] : a.back(), y.back(), layout_of(a, ta),
                  layout_of(b, tb), node.get_float("alpha", 1.0)};
  const Dims batch(y.begin(), y.end() - 2);
  const Space<2> space(batch, {batch_strides(a, batch), batch_strides(b, batch)});
  std::unique_ptr<Kernel> kernel;
  host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    kernel = make_kernel([space, p](Inputs in, Outputs out, void*, gr_error_t*) {
      T* to = host::data<T>(out[0]);
      space.each([&](const auto& at) {
        multiply(p, host::data<T>(in[0]) + at[0], host::data<T>(in[1]) + at[1], to);
        to += p.rows * p.columns;
      });
      return int32_t{GR_OK};
    });
  });
  return kernel;
}

}  // namespace

void add_matmul_kernels(host::KernelTable& table) {
  table.add({"gradrack.FusedMatMul", claim_reals, make_fused_matmul});
}

}  // namespace gradrack::reference
