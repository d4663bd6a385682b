// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, RMSNormalization, GroupNormalization and their gradients.
//
// Invariant: statistics are two-pass in double, so neither a large mean nor large values spoil
// them. Formulas: docs/operators.md.
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

/// What a row is normalised with: (x - mean) * inverse.
struct RowStatistics {
  double mean = 0, inverse = 0;
};

template <class T>
RowStatistics statistics(const T* x, int64_t n, double epsilon, bool center) {
  RowStatistics s;
  if (center) {
    for (int64_t i = 0; i < n; ++i) s.mean += static_cast<double>(x[i]);
    s.mean /= static_cast<double>(n);
  }
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(x[i]) - s.mean;
    squares += d * d;
  }
  s.inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  return s;
}

/// x as rows of n elements, normalised from attribute `axis` on.
struct Rows {
  int64_t rows, n;
  double epsilon;

  Rows(const NodeSpec& node, size_t x) {
    const host::Dims& dims = node.inputs[x].dims;
    const size_t axis = node.get_axis("axis", dims.size(), -1);
    rows = host::product(dims, 0, axis);
    n = host::product(dims, axis, dims.size());
    epsilon = node.get_float("epsilon");
  }
};

template <class T>
std::unique_ptr<host::Kernel> make_norm(const NodeSpec& node, bool center) {
  const Rows r(node, 0);
  const bool has_bias = node.has_input(2);
  const bool has_mean = node.has_output(1), has_inverse = node.has_output(2);
  return make_kernel([=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* x = host::data<T>(in[0]);
    const T* scale = host::data<T>(in[1]);
    const T* bias = has_bias ? host::data<T>(in[2]) : nullptr;
    T* y = host::data<T>(out[0]);
    for (int64_t row = 0; row < r.rows; ++row, x += r.n, y += r.n) {
      const RowStatistics s = statistics(x, r.n, r.epsilon, center);
      for (int64_t i = 0; i < r.n; ++i) {
        const double normal = (static_cast<double>(x[i]) - s.mean) * s.inverse;
        const double offset = bias != nullptr ? static_cast<double>(bias[i]) : 0.0;
        y[i] = static_cast<T>(normal * static_cast<double>(scale[i]) + offset);
      }
      if (has_mean) host::data<T>(out[1])[row] = static_cast<T>(s.mean);
      if (has_inverse) host::data<T>(out[2])[row] = static_cast<T>(s.inverse);
    }
    return GR_OK;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_norm_grad(const NodeSpec& node, bool center) {
  const Rows r(node, 1);
  return make_kernel([r, center](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* gy = host::data<T>(in[0]);
    const T* x = host::data<T>(in[1]);
    const T* scale = host::data<T>(in[2]);
    T* gx = host::data<T>(out[0]);
    for (int64_t row = 0; row < r.rows; ++row, gy += r.n, x += r.n, gx += r.n) {
      const RowStatistics s = statistics(x, r.n, r.epsilon, center);
      double mean = 0, along = 0;  // of g and of g * normal
      for (int64_t i = 0; i < r.n; ++i) {
        const double g = static_cast<double>(gy[i]) * static_cast<double>(scale[i]);
        mean += g;
        along += g * (static_cast<double>(x[i]) - s.mean) * s.inverse;
      }
      mean = center ? mean / static_cast<double>(r.n) : 0.0;
      along /= static_cast<double>(r.n);
      for (int64_t i = 0; i < r.n; ++i) {
        const double g = static_cast<double>(gy[i]) * static_cast<double>(scale[i]);
        const double normal = (static_cast<double>(x[i]) - s.mean) * s.inverse;
        gx[i] = static_cast<T>(s.inverse * (g - mean - normal * along));
      }
    }
    return GR_OK;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_norm_scale_grad(const NodeSpec& node, bool center) {
  const Rows r(node, 1);
  const auto run = [r, center](Inputs in, Outputs out, double* sums, gr_error_t*) -> int32_t {
    const T* gy = host::data<T>(in[0]);
    const T* x = host::data<T>(in[1]);
    for (int64_t i = 0; i < r.n; ++i) sums[i] = 0;
    for (int64_t row = 0; row < r.rows; ++row, gy += r.n, x += r.n) {
      const RowStatistics s = statistics(x, r.n, r.epsilon, center);
      for (int64_t i = 0; i < r.n; ++i) {
        sums[i] += static_cast<double>(gy[i]) * (static_cast<double>(x[i]) - s.mean) * s.inverse;
      }
    }
    T* gscale = host::data<T>(out[0]);
    for (int64_t i = 0; i < r.n; ++i) gscale[i] = static_cast<T>(sums[i]);
    return GR_OK;
  };
  return make_kernel(run, {r.n, {}});
}

/// X [N, C, spatial]: a group's elements are one row; channels of a group share its statistics.
template <class T>
std::unique_ptr<host::Kernel> make_group_norm(const NodeSpec& node) {
  const host::Dims& dims = node.inputs[0].dims;
  const int64_t groups = node.get_int("num_groups"), channels = dims[1] / groups;
  const int64_t plane = host::product(dims, 2, dims.size()), rows = dims[0] * groups;
  const double epsilon = node.get_float("epsilon");
  return make_kernel([=](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const int64_t n = channels * plane;
    for (int64_t row = 0; row < rows; ++row) {
      const T* x = host::data<T>(in[0]) + row * n;
      T* y = host::data<T>(out[0]) + row * n;
      const T* scale = host::data<T>(in[1]) + row % groups * channels;
      const T* bias = host::data<T>(in[2]) + row % groups * channels;
      const RowStatistics s = statistics(x, n, epsilon, true);
      for (int64_t i = 0; i < n; ++i) {
        const double normal = (static_cast<double>(x[i]) - s.mean) * s.inverse;
        const int64_t c = i / plane;
        y[i] =
            static_cast<T>(normal * static_cast<double>(scale[c]) + static_cast<double>(bias[c]));
      }
    }
    return GR_OK;
  });
}

}  // namespace

void add_norm_kernels(host::KernelTable& table) {
  for (const bool center : {true, false}) {
    const std::string name = center ? "LayerNormalization" : "RMSNormalization";
    add_real(table, name.c_str(), 0, [center](auto zero, const NodeSpec& node) {
      return make_norm<decltype(zero)>(node, center);
    });
    add_real(table, ("gradrack." + name + "Grad").c_str(), 1,
             [center](auto zero, const NodeSpec& node) {
               return make_norm_grad<decltype(zero)>(node, center);
             });
    add_real(table, ("gradrack." + name + "ScaleGrad").c_str(), 1,
             [center](auto zero, const NodeSpec& node) {
               return make_norm_scale_grad<decltype(zero)>(node, center);
             });
  }
  add_real(table, "GroupNormalization", 0,
           [](auto zero, const NodeSpec& node) { return make_group_norm<decltype(zero)>(node); });
}

}  // namespace gradrack::reference
