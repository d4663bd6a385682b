// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one input that have one formula: from Neg to Sigmoid, Not, IsNaN.
//
// Formulas are those of the ONNX operators of the same names; reals are computed in double.
#include <cmath>

#include "backends/reference/kernels.hpp"
#include "backends/reference/space.hpp"

namespace gradrack::reference {
namespace {

using RealRule = double (*)(double);
using IntRule = int64_t (*)(int64_t);

double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

template <class T>
std::unique_ptr<Kernel> unary_kernel(int64_t count, Wide<T> (*rule)(Wide<T>)) {
  return make_kernel(
      [count, rule](Inputs in, Outputs out, void*, gr_error_t*) {
        const T* x = host::data<T>(in[0]);
        T* y = host::data<T>(out[0]);
        for (int64_t k = 0; k < count; ++k) {
          y[k] = static_cast<T>(rule(static_cast<Wide<T>>(x[k])));
        }
      },
      shares(0));
}

void add_unary(host::KernelTable& table, const char* op, RealRule real, IntRule ints = nullptr) {
  const auto claim = [ints](const NodeSpec& node) {
    const bool is_real = node.inputs[0].dtype == GR_FLOAT32 || node.inputs[0].dtype == GR_FLOAT64;
    if (!is_real && ints == nullptr) return "input 0 is " + host::dtype_text(node.inputs[0].dtype);
    return claim_reals(node);
  };
  table.add({op, claim, [real, ints](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 if constexpr (std::is_floating_point_v<T>) {
                   kernel = unary_kernel<T>(node.inputs[0].count, real);
                 } else {
                   kernel = unary_kernel<T>(node.inputs[0].count, ints);
                 }
               });
               return kernel;
             }});
}

/// Bool results.
template <class T>
void add_test(host::KernelTable& table, const char* op, bool (*rule)(T)) {
  const auto claim = [](const NodeSpec& node) {
    const bool is_bool = node.inputs[0].dtype == GR_BOOL;
    if (is_bool == std::is_same_v<T, bool>) return claim_reals(node);
    return "input 0 is " + host::dtype_text(node.inputs[0].dtype);
  };
  table.add({op, claim, [rule](const NodeSpec& node) {
               const int64_t count = node.inputs[0].count;
               std::unique_ptr<Kernel> kernel;
               host::dispatch_any(node.inputs[0].dtype, [&](auto zero) {
                 using From = decltype(zero);
                 kernel = make_kernel([count, rule](Inputs in, Outputs out, void*, gr_error_t*) {
                   const From* x = host::data<From>(in[0]);
                   bool* y = host::data<bool>(out[0]);
                   for (int64_t k = 0; k < count; ++k) y[k] = rule(static_cast<T>(x[k]));
                 });
               });
               return kernel;
             }});
}

int64_t negated(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }

}  // namespace

void add_unary_kernels(host::KernelTable& table) {
  add_unary(
      table, "Neg", [](double x) { return -x; }, negated);
  add_unary(
      table, "Abs", [](double x) { return std::fabs(x); },
      [](int64_t x) { return x < 0 ? negated(x) : x; });
  add_unary(
      table, "Sign", [](double x) { return std::isnan(x) ? x : double((x > 0) - (x < 0)); },
      [](int64_t x) { return int64_t{(x > 0) - (x < 0)}; });
  add_unary(
      table, "Relu", [](double x) { return x < 0 ? 0.0 : x; },
      [](int64_t x) { return x < 0 ? int64_t{0} : x; });
  add_unary(table, "Sqrt", [](double x) { return std::sqrt(x); });
  add_unary(table, "Exp", [](double x) { return std::exp(x); });
  add_unary(table, "Log", [](double x) { return std::log(x); });
  add_unary(table, "Erf", [](double x) { return std::erf(x); });
  add_unary(table, "Tanh", [](double x) { return std::tanh(x); });
  add_unary(table, "Sin", [](double x) { return std::sin(x); });
  add_unary(table, "Cos", [](double x) { return std::cos(x); });
  add_unary(table, "Atan", [](double x) { return std::atan(x); });
  add_unary(table, "Floor", [](double x) { return std::floor(x); });
  add_unary(table, "Reciprocal", [](double x) { return 1.0 / x; });
  add_unary(table, "Sigmoid", sigmoid);
  add_unary(table, "Softplus",
            [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
  add_test<bool>(table, "Not", [](bool x) { return !x; });
  add_test<double>(table, "IsNaN", [](double x) { return std::isnan(x); });
}

}  // namespace gradrack::reference
