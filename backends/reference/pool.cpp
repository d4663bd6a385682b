// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their gradients, over one to three spatial axes.
//
// Invariant: padding is never a maximum; the first maximum of a window in row-major order gets the
// gradient; NaN is larger than everything, so that it is not lost. Gradients sum in double.
#include <limits>

#include "backends/common/window.hpp"
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::for_each_position;
using host::NodeSpec;
using host::Triple;
using host::Windows;

/// Windows over each of `planes` = N * C planes.
struct PoolSizes {
  Windows win;
  int64_t planes, in_plane, out_plane;
  bool count_padding;

  PoolSizes(const NodeSpec& node, const host::Dims& x, const host::Dims& y)
      : win(host::make_windows(node, x, y, node.get_ints("kernel_shape"))),
        planes(x[0] * x[1]),
        in_plane(Windows::volume(win.in)),
        out_plane(Windows::volume(win.out)),
        count_padding(node.get_int("count_include_pad", 0) != 0) {}

  /// What the sum of window o is divided by.
  double divisor(const Triple& o) const {
    int64_t count = 0;
    for_each_position(win.kernel, [&](const Triple& k, int64_t) {
      const bool counts = count_padding ? win.in_padded(o, k) : win.input_offset(o, k) >= 0;
      count += counts ? 1 : 0;
    });
    return static_cast<double>(std::max<int64_t>(count, 1));
  }
};

/// Offset of the first maximum of window o in plane x; -1 when the window holds padding alone.
template <class T>
int64_t first_maximum(const Windows& win, const Triple& o, const T* x) {
  int64_t best = -1;
  for_each_position(win.kernel, [&](const Triple& k, int64_t) {
    const int64_t at = win.input_offset(o, k);
    if (at < 0) return;
    if (best < 0 || x[at] > x[best] || (std::isnan(x[at]) && !std::isnan(x[best]))) best = at;
  });
  return best;
}

template <class T>
std::unique_ptr<host::Kernel> make_max_pool(const NodeSpec& node) {
  const PoolSizes s(node, node.inputs[0].dims, node.outputs[0].dims);
  return make_kernel([s](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    for (int64_t p = 0; p < s.planes; ++p, x += s.in_plane) {
      for_each_position(s.win.out, [&](const Triple& o, int64_t) {
        const int64_t at = first_maximum(s.win, o, x);
        *y++ = at >= 0 ? x[at] : -std::numeric_limits<T>::infinity();
      });
    }
    return GR_OK;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_average_pool(const NodeSpec& node) {
  const PoolSizes s(node, node.inputs[0].dims, node.outputs[0].dims);
  return make_kernel([s](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    for (int64_t p = 0; p < s.planes; ++p, x += s.in_plane) {
      for_each_position(s.win.out, [&](const Triple& o, int64_t) {
        double sum = 0;
        for_each_position(s.win.kernel, [&](const Triple& k, int64_t) {
          const int64_t at = s.win.input_offset(o, k);
          if (at >= 0) sum += static_cast<double>(x[at]);
        });
        *y++ = static_cast<T>(sum / s.divisor(o));
      });
    }
    return GR_OK;
  });
}

/// A gradient that scatters each gy over a plane of doubles: scatter(o, gy, plane number, plane).
template <class T, class Scatter>
void scatter_planes(const PoolSizes& s, const T* gy, T* gx, double* plane, Scatter scatter) {
  for (int64_t p = 0; p < s.planes; ++p, gx += s.in_plane) {
    for (int64_t i = 0; i < s.in_plane; ++i) plane[i] = 0;
    for_each_position(s.win.out, [&](const Triple& o, int64_t) {
      scatter(o, static_cast<double>(*gy++), p, plane);
    });
    for (int64_t i = 0; i < s.in_plane; ++i) gx[i] = static_cast<T>(plane[i]);
  }
}

template <class T>
std::unique_ptr<host::Kernel> make_max_pool_grad(const NodeSpec& node) {
  const PoolSizes s(node, node.inputs[1].dims, node.inputs[0].dims);
  const auto run = [s](Inputs in, Outputs out, double* plane, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[1]);
    scatter_planes(s, host::data<T>(in[0]), host::data<T>(out[0]), plane,
                   [&](const Triple& o, double g, int64_t p, double* sums) {
                     const int64_t at = first_maximum(s.win, o, x + p * s.in_plane);
                     if (at >= 0) sums[at] += g;
                   });
    return GR_OK;
  };
  return make_kernel(run, {s.in_plane, {}});
}

template <class T>
std::unique_ptr<host::Kernel> make_average_pool_grad(const NodeSpec& node) {
  const PoolSizes s(node, node.outputs[0].dims, node.inputs[0].dims);
  const auto run = [s](Inputs in, Outputs out, double* plane, gr_error_t*) -> int32_t {
    scatter_planes(s, host::data<T>(in[0]), host::data<T>(out[0]), plane,
                   [&](const Triple& o, double g, int64_t, double* sums) {
                     const double share = g / s.divisor(o);
                     for_each_position(s.win.kernel, [&](const Triple& k, int64_t) {
                       const int64_t at = s.win.input_offset(o, k);
                       if (at >= 0) sums[at] += share;
                     });
                   });
    return GR_OK;
  };
  return make_kernel(run, {s.in_plane, {}});
}

/// Refuses other dtypes and more spatial axes than the windows have.
std::string claim_windows(const NodeSpec& node) {
  const std::string reason = host::refuse_axes(node.inputs[0].rank());
  return reason.empty() ? claim_reals(node) : reason;
}

}  // namespace

void add_pool_kernels(host::KernelTable& table) {
  add_real(
      table, "MaxPool", 0,
      [](auto zero, const NodeSpec& node) { return make_max_pool<decltype(zero)>(node); },
      claim_windows);
  add_real(
      table, "AveragePool", 0,
      [](auto zero, const NodeSpec& node) { return make_average_pool<decltype(zero)>(node); },
      claim_windows);
  add_real(
      table, "gradrack.MaxPoolGrad", 0,
      [](auto zero, const NodeSpec& node) { return make_max_pool_grad<decltype(zero)>(node); },
      claim_windows);
  add_real(
      table, "gradrack.AveragePoolGrad", 0,
      [](auto zero, const NodeSpec& node) { return make_average_pool_grad<decltype(zero)>(node); },
      claim_windows);
}

}  // namespace gradrack::reference
