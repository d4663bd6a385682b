// SPDX-License-Identifier: Apache-2.0
// Activations with attributes and their gradients: Gelu, Swish, LeakyRelu, GeluGrad, SwishGrad;
// Clip.
//
// Each is the formula that the operator's entry states, computed in double.
#include <cmath>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

const double kPi = std::acos(-1.0);

/// y = rule(x).
template <class Rule>
std::unique_ptr<Kernel> map_kernel(const NodeSpec& node, Rule rule) {
  std::unique_ptr<Kernel> kernel;
  const int64_t count = node.inputs[0].count;
  host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    kernel = make_kernel(
        [count, rule](Inputs in, Outputs out, void*, gr_error_t*) {
          for (int64_t k = 0; k < count; ++k) {
            host::data<T>(out[0])[k] = static_cast<T>(rule(double(host::data<T>(in[0])[k])));
          }
          return int32_t{GR_OK};
        },
        shares(0));
  });
  return kernel;
}

/// gx = gy * slope(x): inputs gy, x.
template <class Slope>
std::unique_ptr<Kernel> slope_kernel(const NodeSpec& node, Slope slope) {
  std::unique_ptr<Kernel> kernel;
  const int64_t count = node.inputs[0].count;
  host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    kernel = make_kernel(
        [count, slope](Inputs in, Outputs out, void*, gr_error_t*) {
          for (int64_t k = 0; k < count; ++k) {
            const double gy = double(host::data<T>(in[0])[k]);
            const double x = double(host::data<T>(in[1])[k]);
            host::data<T>(out[0])[k] = static_cast<T>(gy * slope(x));
          }
          return int32_t{GR_OK};
        },
        shares(0));
  });
  return kernel;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double gelu(double x, bool tanh_form) {
  if (!tanh_form) return 0.5 * x * (1.0 + std::erf(x * std::sqrt(0.5)));
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / kPi) * (x + 0.044715 * x * x * x)));
}

double gelu_slope(double x, bool tanh_form) {
  if (!tanh_form) {
    const double pdf = std::exp(-0.5 * x * x) / std::sqrt(2.0 * kPi);
    return 0.5 * (1.0 + std::erf(x * std::sqrt(0.5))) + x * pdf;
  }
  const double scale = std::sqrt(2.0 / kPi);
  const double t = std::tanh(scale * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * scale * (1.0 + 3.0 * 0.044715 * x * x);
}

double swish_slope(double x, double alpha) {
  const double s = sigmoid(alpha * x);
  return s * (1.0 + alpha * x * (1.0 - s));
}

bool is_tanh(const NodeSpec& node) { return node.get_string("approximate") == "tanh"; }

std::unique_ptr<Kernel> clip_kernel(const NodeSpec& node) {
  std::unique_ptr<Kernel> kernel;
  const int64_t count = node.inputs[0].count;
  const bool low = node.has_input(1), high = node.has_input(2);
  host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    kernel = make_kernel(
        [count, low, high](Inputs in, Outputs out, void*, gr_error_t*) {
          for (int64_t k = 0; k < count; ++k) {
            T x = host::data<T>(in[0])[k];
            if (low && x < *host::data<T>(in[1])) x = *host::data<T>(in[1]);
            if (high && x > *host::data<T>(in[2])) x = *host::data<T>(in[2]);
            host::data<T>(out[0])[k] = x;
          }
          return int32_t{GR_OK};
        },
        shares(0));
  });
  return kernel;
}

}  // namespace

void add_activation_kernels(host::KernelTable& table) {
  table.add({"Gelu", claim_reals, [](const NodeSpec& node) {
               return map_kernel(node, [t = is_tanh(node)](double x) { return gelu(x, t); });
             }});
  table.add({"gradrack.GeluGrad", claim_reals, [](const NodeSpec& node) {
               return slope_kernel(node,
                                   [t = is_tanh(node)](double x) { return gelu_slope(x, t); });
             }});
  table.add({"Swish", claim_reals, [](const NodeSpec& node) {
               const double alpha = node.get_float("alpha", 1.0);
               return map_kernel(node, [alpha](double x) { return x * sigmoid(alpha * x); });
             }});
  table.add({"gradrack.SwishGrad", claim_reals, [](const NodeSpec& node) {
               const double alpha = node.get_float("alpha", 1.0);
               return slope_kernel(node, [alpha](double x) { return swish_slope(x, alpha); });
             }});
  table.add({"LeakyRelu", claim_reals, [](const NodeSpec& node) {
               const double alpha = node.get_float("alpha", 0.01);
               return map_kernel(node, [alpha](double x) { return x > 0 ? x : alpha * x; });
             }});
  table.add({"Clip", claim_reals, clip_kernel});
}

}  // namespace gradrack::reference
