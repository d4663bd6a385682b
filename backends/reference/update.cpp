// SPDX-License-Identifier: Apache-2.0
// gradrack.AdamW, gradrack.SumSquares and gradrack.IsFinite.
//
// Invariant: an element's update is computed in double and rounded once; with ok = false the old
// values come back bit for bit. Formula: docs/operators.md.
#include "backends/reference/function_kernel.hpp"

namespace gradrack::reference {
namespace {

using host::NodeSpec;

template <class T>
std::unique_ptr<host::Kernel> make_adamw(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count;
  const double beta1 = node.get_float("beta1"), beta2 = node.get_float("beta2");
  const double eps = node.get_float("eps"), decay = node.get_float("weight_decay");
  const bool gated = node.has_input(6);
  const bool has_m = node.has_output(1), has_v = node.has_output(2);
  const auto run = [=](Inputs in, Outputs out, double*, gr_error_t*) {
    const double lr = host::data<double>(in[4])[0], step = host::data<double>(in[5])[0];
    const bool ok = !gated || host::data<bool>(in[6])[0];
    const double rate = lr / (1 - std::pow(beta1, step));
    const double root = std::sqrt(1 - std::pow(beta2, step));
    for (int64_t i = 0; i < count; ++i) {
      const T old_p = host::data<T>(in[0])[i];
      const T old_m = host::data<T>(in[2])[i], old_v = host::data<T>(in[3])[i];
      const double g = static_cast<double>(host::data<T>(in[1])[i]);
      const double m = beta1 * static_cast<double>(old_m) + (1 - beta1) * g;
      const double v = beta2 * static_cast<double>(old_v) + (1 - beta2) * g * g;
      const double kept = static_cast<double>(old_p) * (1 - lr * decay);
      const double p = kept - rate * m / (std::sqrt(v) / root + eps);
      host::data<T>(out[0])[i] = ok ? static_cast<T>(p) : old_p;
      if (has_m) host::data<T>(out[1])[i] = ok ? static_cast<T>(m) : old_m;
      if (has_v) host::data<T>(out[2])[i] = ok ? static_cast<T>(v) : old_v;
    }
  };
  return make_kernel(run, {0, {0, 2, 3}});
}

std::string claim_adamw(const NodeSpec& node) {
  if (node.inputs[2].dtype != node.inputs[0].dtype) {
    return "state of another dtype than the parameter's";
  }
  return claim_reals(node);
}

template <class T>
std::unique_ptr<host::Kernel> make_sum_squares(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count;
  return make_kernel([count](Inputs in, Outputs out, double*, gr_error_t*) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(host::data<T>(in[0])[i]);
      sum += x * x;
    }
    host::data<double>(out[0])[0] = sum;
  });
}

template <class T>
std::unique_ptr<host::Kernel> make_is_finite(const NodeSpec& node) {
  const int64_t count = node.inputs[0].count;
  return make_kernel([count](Inputs in, Outputs out, double*, gr_error_t*) {
    for (int64_t i = 0; i < count; ++i) {
      host::data<bool>(out[0])[i] = std::isfinite(host::data<T>(in[0])[i]);
    }
  });
}

}  // namespace

void add_update_kernels(host::KernelTable& table) {
  add_real(
      table, "gradrack.AdamW", 0,
      [](auto zero, const NodeSpec& node) { return make_adamw<decltype(zero)>(node); },
      claim_adamw);
  add_real(table, "gradrack.SumSquares", 0,
           [](auto zero, const NodeSpec& node) { return make_sum_squares<decltype(zero)>(node); });
  add_real(table, "gradrack.IsFinite", 0,
           [](auto zero, const NodeSpec& node) { return make_is_finite<decltype(zero)>(node); });
}

}  // namespace gradrack::reference
