// SPDX-License-Identifier: Apache-2.0
// Conv and its gradients to input and weight, over one to three spatial axes.
//
// Invariant: each result element is one sum in double over the taps that meet it, so nothing
// depends on an order of accumulation. Formula: docs/operators.md.
#include "backends/common/window.hpp"
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::for_each_position;
using host::NodeSpec;
using host::Triple;
using host::Windows;

/// Sizes of x [N, C, in], w [M, C/group, kernel], y [N, M, out].
struct ConvSizes {
  Windows win;
  int64_t samples, in_channels, out_channels, group;
  int64_t group_in, group_out;          // channels of one group
  int64_t in_plane, out_plane, kernel;  // elements

  ConvSizes(const NodeSpec& node, const host::Dims& x, const host::Dims& w, const host::Dims& y)
      : win(host::make_windows(node, x, y, host::Dims(w.begin() + 2, w.end()))),
        samples(x[0]),
        in_channels(x[1]),
        out_channels(w[0]),
        group(node.get_int("group")),
        group_in(w[1]),
        group_out(w[0] / group),
        in_plane(Windows::volume(win.in)),
        out_plane(Windows::volume(win.out)),
        kernel(Windows::volume(win.kernel)) {}

  /// Channel of x that channel c of a filter m reads.
  int64_t in_channel(int64_t m, int64_t c) const { return m / group_out * group_in + c; }
};

template <class T>
std::unique_ptr<host::Kernel> make_conv(const NodeSpec& node) {
  const ConvSizes s(node, node.inputs[0].dims, node.inputs[1].dims, node.outputs[0].dims);
  const bool has_bias = node.has_input(2);
  return make_kernel([s, has_bias](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* w = host::data<T>(in[1]);
    T* y = host::data<T>(out[0]);
    for (int64_t n = 0; n < s.samples; ++n) {
      const T* x = host::data<T>(in[0]) + n * s.in_channels * s.in_plane;
      for (int64_t m = 0; m < s.out_channels; ++m) {
        for_each_position(s.win.out, [&](const Triple& o, int64_t) {
          double sum = has_bias ? static_cast<double>(host::data<T>(in[2])[m]) : 0.0;
          for_each_position(s.win.kernel, [&](const Triple& k, int64_t tap) {
            const int64_t at = s.win.input_offset(o, k);
            if (at < 0) return;
            for (int64_t c = 0; c < s.group_in; ++c) {
              sum += static_cast<double>(x[s.in_channel(m, c) * s.in_plane + at]) *
                     static_cast<double>(w[(m * s.group_in + c) * s.kernel + tap]);
            }
          });
          *y++ = static_cast<T>(sum);
        });
      }
    }
    return GR_OK;
  });
}

/// Scatters gy * w over a plane of doubles for one input channel, then rounds it once.
template <class T>
std::unique_ptr<host::Kernel> make_conv_input_grad(const NodeSpec& node) {
  const ConvSizes s(node, node.outputs[0].dims, node.inputs[1].dims, node.inputs[0].dims);
  const auto run = [s](Inputs in, Outputs out, double* plane, gr_error_t*) -> int32_t {
    const T* w = host::data<T>(in[1]);
    T* gx = host::data<T>(out[0]);
    for (int64_t n = 0; n < s.samples; ++n) {
      const T* gy = host::data<T>(in[0]) + n * s.out_channels * s.out_plane;
      for (int64_t channel = 0; channel < s.in_channels; ++channel, gx += s.in_plane) {
        for (int64_t i = 0; i < s.in_plane; ++i) plane[i] = 0;
        const int64_t first = channel / s.group_in * s.group_out, c = channel % s.group_in;
        for (int64_t m = first; m < first + s.group_out; ++m) {
          for_each_position(s.win.out, [&](const Triple& o, int64_t position) {
            const double g = static_cast<double>(gy[m * s.out_plane + position]);
            for_each_position(s.win.kernel, [&](const Triple& k, int64_t tap) {
              const int64_t at = s.win.input_offset(o, k);
              if (at < 0) return;
              plane[at] += g * static_cast<double>(w[(m * s.group_in + c) * s.kernel + tap]);
            });
          });
        }
        for (int64_t i = 0; i < s.in_plane; ++i) gx[i] = static_cast<T>(plane[i]);
      }
    }
    return GR_OK;
  };
  return make_kernel(run, {s.in_plane, {}});
}

template <class T>
std::unique_ptr<host::Kernel> make_conv_weight_grad(const NodeSpec& node) {
  const ConvSizes s(node, node.inputs[1].dims, node.outputs[0].dims, node.inputs[0].dims);
  return make_kernel([s](Inputs in, Outputs out, double*, gr_error_t*) -> int32_t {
    const T* gy = host::data<T>(in[0]);
    const T* x = host::data<T>(in[1]);
    T* gw = host::data<T>(out[0]);
    for (int64_t m = 0; m < s.out_channels; ++m) {
      for (int64_t c = 0; c < s.group_in; ++c) {
        for_each_position(s.win.kernel, [&](const Triple& k, int64_t) {
          double sum = 0;
          for (int64_t n = 0; n < s.samples; ++n) {
            const T* gy_plane = gy + (n * s.out_channels + m) * s.out_plane;
            const T* x_plane = x + (n * s.in_channels + s.in_channel(m, c)) * s.in_plane;
            for_each_position(s.win.out, [&](const Triple& o, int64_t position) {
              const int64_t at = s.win.input_offset(o, k);
              if (at < 0) return;
              sum += static_cast<double>(gy_plane[position]) * static_cast<double>(x_plane[at]);
            });
          }
          *gw++ = static_cast<T>(sum);
        });
      }
    }
    return GR_OK;
  });
}

/// Refuses other dtypes and more spatial axes than the windows have.
std::string claim_windows(const NodeSpec& node) {
  const std::string reason = host::refuse_axes(node.inputs[0].rank());
  return reason.empty() ? claim_reals(node) : reason;
}

}  // namespace

void add_conv_kernels(host::KernelTable& table) {
  add_real(
      table, "Conv", 0,
      [](auto zero, const NodeSpec& node) { return make_conv<decltype(zero)>(node); },
      claim_windows);
  add_real(
      table, "gradrack.ConvInputGrad", 0,
      [](auto zero, const NodeSpec& node) { return make_conv_input_grad<decltype(zero)>(node); },
      claim_windows);
  add_real(
      table, "gradrack.ConvWeightGrad", 0,
      [](auto zero, const NodeSpec& node) { return make_conv_weight_grad<decltype(zero)>(node); },
      claim_windows);
}

}  // namespace gradrack::reference
