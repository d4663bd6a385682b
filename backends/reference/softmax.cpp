// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and their gradients along one axis.
//
// Invariant: a row's maximum is taken off first and its sum is a double. Formulas:
// docs/operators.md.
#include <limits>

#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

/// A tensor as [outer, size, inner] around one axis; element k of a row is at start + k * inner.
struct Lines {
  int64_t outer, size, inner;

  explicit Lines(const NodeSpec& node) {
    const host::Dims& dims = node.inputs[0].dims;
    const size_t axis = node.get_axis("axis", dims.size(), -1);
    outer = host::product(dims, 0, axis);
    size = dims[axis];
    inner = host::product(dims, axis + 1, dims.size());
  }
  template <class Body>
  void for_each(Body body) const {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) body(o * size * inner + i);
    }
  }
};

/// Adds a kernel that treats each line on its own: body(lines, start, in, out).
template <class Body>
void add_lines(host::KernelTable& table, const char* op, Body body) {
  add_real(table, op, 0, [body](auto zero, const NodeSpec& node) {
    using T = decltype(zero);
    const Lines lines(node);
    const bool two = node.has_input(1);
    return make_kernel([lines, body, two](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
      const T* a = host::data<T>(in[0]);
      const T* b = host::data<T>(in[two ? 1 : 0]);
      T* y = host::data<T>(out[0]);
      lines.for_each([&](int64_t start) { body(lines, a + start, b + start, y + start); });
      return GR_OK;
    });
  });
}

/// Maximum of a line, and the sum of exp(x - max).
template <class T>
double log_sum_parts(const Lines& l, const T* x, double* sum) {
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t k = 0; k < l.size; ++k) max = std::fmax(max, static_cast<double>(x[k * l.inner]));
  *sum = 0;
  for (int64_t k = 0; k < l.size; ++k) {
    *sum += std::exp(static_cast<double>(x[k * l.inner]) - max);
  }
  return max;
}

}  // namespace

void add_softmax_kernels(host::KernelTable& table) {
  add_lines(table, "Softmax", [](const Lines& l, const auto* x, const auto*, auto* y) {
    double sum = 0;
    const double max = log_sum_parts(l, x, &sum);
    for (int64_t k = 0; k < l.size; ++k) {
      const double power = std::exp(static_cast<double>(x[k * l.inner]) - max);
      y[k * l.inner] = static_cast<std::decay_t<decltype(*y)>>(power / sum);
    }
  });
  add_lines(table, "LogSoftmax", [](const Lines& l, const auto* x, const auto*, auto* y) {
    double sum = 0;
    const double max = log_sum_parts(l, x, &sum);
    for (int64_t k = 0; k < l.size; ++k) {
      const double shifted = static_cast<double>(x[k * l.inner]) - max;
      y[k * l.inner] = static_cast<std::decay_t<decltype(*y)>>(shifted - std::log(sum));
    }
  });
  add_lines(
      table, "gradrack.SoftmaxGrad", [](const Lines& l, const auto* gy, const auto* y, auto* gx) {
        double sum = 0;
        for (int64_t k = 0; k < l.size; ++k) {
          sum += static_cast<double>(gy[k * l.inner]) * static_cast<double>(y[k * l.inner]);
        }
        for (int64_t k = 0; k < l.size; ++k) {
          const double g = static_cast<double>(gy[k * l.inner]) - sum;
          gx[k * l.inner] =
              static_cast<std::decay_t<decltype(*gx)>>(g * static_cast<double>(y[k * l.inner]));
        }
      });
  add_lines(table, "gradrack.LogSoftmaxGrad",
            [](const Lines& l, const auto* gy, const auto* y, auto* gx) {
              double sum = 0;
              for (int64_t k = 0; k < l.size; ++k) sum += static_cast<double>(gy[k * l.inner]);
              for (int64_t k = 0; k < l.size; ++k) {
                const double part = std::exp(static_cast<double>(y[k * l.inner])) * sum;
                gx[k * l.inner] = static_cast<std::decay_t<decltype(*gx)>>(
                    static_cast<double>(gy[k * l.inner]) - part);
              }
            });
}

}  // namespace gradrack::reference
