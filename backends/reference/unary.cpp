// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one input, in the dtype of the input.
//
// The example of a family: a claim that says why not, a kernel made for one node, a table of entries.
// Formulas are those of the ONNX operators of the same names.
#include <cmath>
#include <cstdlib>

#include "backends/common/tensor_access.hpp"
#include "backends/reference/kernels.hpp"

namespace gradrack::reference {
namespace {

using host::Kernel;
using host::NodeSpec;

/// y[i] = f(x[i]), computed in double whatever T is.
template <class T>
class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(int64_t count, double (*function)(double)) : count_(count), function_(function) {}

  int in_place(int) const override { return 0; }

  int32_t run(const DLTensor* const* in, DLTensor* const* out, void*, gr_error_t*) const override {
    const T* x = host::data<T>(in[0]);
    T* y = host::data<T>(out[0]);
    for (int64_t i = 0; i < count_; ++i) {
      y[i] = static_cast<T>(function_(static_cast<double>(x[i])));
    }
    return GR_OK;
  }

 private:
  int64_t count_;
  double (*function_)(double);
};

std::string claim_unary(const NodeSpec& node) {
  return host::refuse_reals_except(node, {GR_FLOAT32, GR_FLOAT64});
}

void add_unary(host::KernelTable& table, const char* op, double (*function)(double)) {
  table.add({op, claim_unary, [function](const NodeSpec& node) {
               std::unique_ptr<Kernel> kernel;
               host::dispatch_real(node.inputs[0].dtype, [&](auto zero) {
                 using T = decltype(zero);
                 kernel = std::make_unique<UnaryKernel<T>>(node.inputs[0].count, function);
               });
               return kernel;
             }});
}

}  // namespace

void add_unary_kernels(host::KernelTable& table) {
  add_unary(table, "Neg", [](double x) { return -x; });
  add_unary(table, "Abs", [](double x) { return std::fabs(x); });
  add_unary(table, "Sqrt", [](double x) { return std::sqrt(x); });
  add_unary(table, "Exp", [](double x) { return std::exp(x); });
  add_unary(table, "Log", [](double x) { return std::log(x); });
}

}  // namespace gradrack::reference
